"""The programs of a session, who runs them, and the first values of their parameters."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fluidnb.errors import NotFound, near
from fluidnb.program import Program, default_main_program, default_startup_program
from fluidnb.runtime import Executor, Scope
from fluidnb.values import CPUPlace, Place
from fluidnb.values import invalidation as epoch
from fluidnb_magics.session.initial_values import FirstValues

if TYPE_CHECKING:
    from fluidnb_magics.session.training import Run

#: How the default program is called.
DEFAULT = "default"


class SessionPrograms:
    """Programs by name, and their parameters.

    Attributes:
        named: name -> main and startup program.
        values: first values of parameters.
        place: where programs run.
        runs: the training runs that are kept.

    Example:
        >>> sorted(SessionPrograms().programs)
        ['default']
    """

    def __init__(self) -> None:
        self.named: dict[str, tuple[Program, Program]] = {}
        self.values = FirstValues()
        self.place: Place = CPUPlace()
        self.runs: list[Run] = []
        self._executor: Executor | None = None
        self._filling = False
        self._pairs: list[tuple[Program, Program]] = []
        self._checked: weakref.WeakKeyDictionary[Program, Any] = weakref.WeakKeyDictionary()

    def program(self, name: str | None = None) -> tuple[Program, Program]:
        """A pair of programs.

        Args:
            name: the pair's name, made if need be; the default programs when left out.

        Returns:
            The main and the startup program.
        """
        if name in (None, DEFAULT):
            pair = default_main_program(), default_startup_program()
        else:
            pair = self.named.setdefault(str(name), (Program(), Program()))
        if pair not in self._pairs:
            self._pairs.append(pair)
        return pair

    def existing(self, name: str | None = None) -> tuple[Program, Program]:
        """A pair of programs that a cell has made.

        Args:
            name: the pair's name; the default programs when left out.

        Returns:
            The main and the startup program.

        Raises:
            NotFound: there is no such pair.
        """
        if name is not None and name not in self.programs:
            raise NotFound(
                f"there is no program {name}.", expected=", ".join(self.programs), received=name,
                hint=near(name, self.programs) or f"%%fluid --program {name} makes one.",
            )  # fmt: skip
        return self.program(name)

    @property
    def programs(self) -> dict[str, tuple[Program, Program]]:
        """name -> main and startup program; the default ones, which may change, are called ``default``."""
        return {DEFAULT: self.program(), **self.named}

    # Running.

    @property
    def executor(self) -> Executor:
        """The executor of the magics."""
        if self._executor is None:
            self._executor = Executor(self.place)
        return self._executor

    def use(self, place: Place) -> None:
        """Run programs on another place from now on; parameters go there at the next run.

        Args:
            place: the place.

        Raises:
            EnforceNotMet: it cannot be used here.
        """
        self._executor = Executor(place)
        self.place = place

    @contextmanager
    def switching(self, place: Place) -> Iterator[None]:
        """Run programs on another place from now on, unless what is done inside fails.

        Args:
            place: the place.

        Raises:
            EnforceNotMet: it cannot be used here.
        """
        before = self._executor, self.place
        self.use(place)
        try:
            yield
        except BaseException:
            self._executor, self.place = before
            raise

    def before_run(self, program: Program, scope: Scope) -> None:
        """The hook of executors: give parameters that have none their first values.

        Args:
            program: the program that is about to run.
            scope: where its persistable variables live.
        """
        startups = [startup for _, startup in self._pairs]
        if self._filling or program in startups or self._checked.get(program) == _state(program, startups, scope):
            return
        wanted = {n for n, v in program.desc.blocks[0].vars.items() if v.persistable()}
        self._filling = True  # first values come from a run, too
        try:
            for main, startup in self._pairs:
                self.values.fill(main, startup, scope, wanted)
        finally:
            self._filling = False
        self._checked[program] = _state(program, startups, scope)

    def forget_values(self, scope: Scope) -> list[str]:
        """Drop the values of parameters and of all else that startup programs initialise; the next run starts over.

        Args:
            scope: where they live.

        Returns:
            The names of the variables that had a value.
        """
        self._checked.clear()
        return [name for _, startup in self._pairs for name in self.values.forget(startup, scope)]


def _state(program: Program, startups: list[Program], scope: Scope) -> tuple[Any, ...]:
    """What first values depend on: nothing is missing that was not while this stays."""
    return (program.version, *(startup.version for startup in startups), id(scope), epoch.value)
