"""The session behind the magics: cells, the programs that they build, and the values of their parameters.

Nothing here parses a magic's line or prints; the magics do.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from IPython.utils.capture import capture_output

from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.program import Program, default_main_program, default_startup_program, hooks, program_guard
from fluidnb.program.fragments import Fragment, FragmentLog, Report, Task
from fluidnb.runtime import Executor, Scope
from fluidnb.values import epoch
from fluidnb_magics import sub_blocks
from fluidnb_magics.cell_names import names_bound, names_read
from fluidnb_magics.cells import Cell, Compiled, compile_cell, run_cell
from fluidnb_magics.name_hints import NameHints
from fluidnb_magics.parameters import FirstValues

#: How the default program is called.
DEFAULT = "default"


class Workbench:
    """Cells, programs and parameters of one shell.

    Args:
        shell: the IPython shell.

    Attributes:
        log: the fragments that cells appended.
        named: name -> main and startup program.
        values: first values of parameters.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.named: dict[str, tuple[Program, Program]] = {}
        self.values = FirstValues()
        self.log = FragmentLog(self._execute, shell.user_ns, self._reads, self._binds)
        self._compiled: dict[Cell, Compiled] = {}
        self._executor: Executor | None = None
        self._filling = False
        self._pairs: list[tuple[Program, Program]] = []
        self._checked: weakref.WeakKeyDictionary[Program, Any] = weakref.WeakKeyDictionary()

    # Cells.

    def run_cell(self, cell: Cell) -> Report:
        """Run a cell: at the end when it is new, in its place when it ran before.

        Args:
            cell: the cell.

        Returns:
            What happened, to it and to later cells.

        Raises:
            BaseException: what the cell, or one that has to run again because of it, raises; all is as before then.
        """
        self.program(cell.program)
        self._compiled[cell] = compile_cell(self.shell, cell)
        try:
            return self.log.run(cell.key, cell, cell.title)
        finally:
            alive = {f.task.source for f in self.cells}
            self._compiled = {c: code for c, code in self._compiled.items() if c in alive}

    @property
    def cells(self) -> list[Fragment]:
        """The fragments of cells in program order; stale ones too, edits made between cells not."""
        return [f for f in self.log.fragments if not f.loose]

    def key(self, cell_id: str | None, name: str | None) -> Hashable:
        """What identifies a cell that is about to run: its name, else the front end's id.

        A name that another cell has means that cell, as a function that is defined again replaces the first one. A cell
        that changes its name stays the same cell.

        Args:
            cell_id: the front end's id, or None.
            name: the name given to ``%%fluid``, or None.

        Returns:
            The key of the cell that it replaces, or a new one.

        Raises:
            OpValueError: the name belongs to another cell, and this cell has built something under another name.
        """
        by_name = [f.key for f in self.cells if name is not None and f.task.source.name == name]
        by_id = [f.key for f in self.cells if cell_id is not None and f.task.source.cell_id == cell_id]
        if by_name and by_id and by_name != by_id:
            raise OpValueError(
                f'the name "{name}" belongs to another cell.', expected="a name of its own",
                received=f"%%fluid {name}", hint=f"%fluid drop {name} removes the other one.",
            )  # fmt: skip
        found = by_name or by_id
        return found[0] if found else cell_id if cell_id is not None else name

    def find(self, name: str) -> Fragment:
        """The fragment of a cell.

        Args:
            name: what ``%fluid cells`` calls it, or its number ``3`` for ``In[3]``.

        Returns:
            The fragment.

        Raises:
            OpValueError: there is none.
        """
        for fragment in self.cells:
            cell: Cell = fragment.task.source
            if name in (cell.name, cell.title, str(cell.number)):
                return fragment
        names = [f.title for f in self.cells]
        raise OpValueError(
            f"there is no cell {name}.", expected=", ".join(names) or "no cells yet", received=name,
            hint=near(name, names) or "%fluid cells lists them.",
        )  # fmt: skip

    def drop(self, names: list[str]) -> Report:
        """Remove cells.

        Args:
            names: what `find` takes.

        Returns:
            What happened to the later cells.
        """
        return self.log.drop(*[self.find(name).key for name in names])

    def drop_deleted(self, ids: list[str]) -> Report:
        """Remove the cells that the front end deleted; a later cell that fails without them becomes stale.

        Args:
            ids: their ids; those that are no cells of ours are passed over.

        Returns:
            What happened to the later cells.
        """
        return self.log.drop(*[f.key for f in self.cells if f.task.source.cell_id in ids], keep_going=True)

    def reset(self) -> Report:
        """Remove all cells."""
        return self.log.drop(*[f.key for f in self.cells])

    def free_name(self, name: str) -> str:
        """The first of ``name``, ``name_1``, … that no cell has."""
        taken = {f.task.source.name for f in self.cells}
        number, free = 0, name
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        return free

    # Programs.

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
        """The executor of the magics, on the CPU."""
        if self._executor is None:
            self._executor = Executor()
        return self._executor

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

    # How a cell runs; the fragments call these.

    def _execute(self, task: Task) -> None:
        cell: Cell = task.source
        with self._building(cell), capture_output() if task.again else nullcontext():
            run_cell(self.shell, cell, self._code(cell), display=not task.again)

    def _reads(self, task: Task) -> set[str]:
        return names_read(self._code(task.source).code, self.shell.user_ns)

    def _binds(self, task: Task) -> set[str]:
        return names_bound(self._code(task.source).code)

    def _code(self, cell: Cell) -> Compiled:
        if cell not in self._compiled:
            self._compiled[cell] = compile_cell(self.shell, cell)
        return self._compiled[cell]

    @contextmanager
    def _building(self, cell: Cell) -> Iterator[None]:
        """The programs, the block and the names into which a cell builds."""
        main, startup = self.program(cell.program)
        hint, hooks.name_hint = hooks.name_hint, NameHints(cell.name)
        try:
            # A cell that builds into the default programs may put others in their place.
            with nullcontext() if cell.program in (None, DEFAULT) else program_guard(main, startup):
                with nullcontext() if cell.block is None else sub_blocks.continued(self, main, cell.block):
                    yield
        finally:
            hooks.name_hint = hint


def _state(program: Program, startups: list[Program], scope: Scope) -> tuple[Any, ...]:
    """What first values depend on: nothing is missing that was not while this stays."""
    return (program.version, *(startup.version for startup in startups), id(scope), epoch.value)
