"""Trackers: observers of a training, which send its values elsewhere; a class of one or two methods is enough."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError
from fluidnb.program import Program, Variable, default_main_program
from fluidnb.runtime.last_values import number_of
from fluidnb.runtime.observers import after_run
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import on_host
from fluidnb.values.tensor import array_of


@dataclass(frozen=True)
class Step:
    """A finished training step.

    Attributes:
        number: its number, from 0.
        values: name of each tracked variable -> its value as a number, the mean of its elements.
        program: the program that ran.
        scope: the scope with its parameters.
    """

    number: int
    values: Mapping[str, float]
    program: Program
    scope: Scope

    def parameters(self) -> Iterator[tuple[str, np.ndarray]]:
        """The name and a copy of each parameter; nothing is copied without this call."""
        for parameter in self.program.all_parameters():
            variable = self.scope.find_var(parameter.name)
            array = array_of(None if variable is None else variable.value)
            if array is not None:
                yield parameter.name, np.array(on_host(array))


class Tracker:
    """Base class of trackers; each method may be overridden."""

    def begin(self, program: Program) -> None:
        """Called before the first step.

        Args:
            program: the program whose runs are the steps.
        """

    def step(self, step: Step) -> None:
        """Called after each tracked step, in the thread that ran it.

        Args:
            step: the step.
        """

    def end(self, how: str) -> None:
        """Called after the last step.

        Args:
            how: ``done``, ``interrupted`` or ``failed``.
        """


@contextmanager
def track(
    *trackers: Tracker, watch: Sequence[Variable | str] = (), program: Program | None = None, every: int = 1
) -> Iterator[None]:
    """Report each run of a program to trackers, as a training step, inside a ``with``.

    A tracker whose `Tracker.step` raises gets no further step; the training goes on, and the error is printed.

    Args:
        watch: variables to report, fetched or persistable; without any, all numbers that a run fetches.
        program: the program; default the main program.
        every: report every n-th step.

    Raises:
        OpTypeError: something else than a tracker.

    Example:
        >>> class Losses(fluid.tracking.Tracker):
        ...     def step(self, step):
        ...         print(step.number, step.values)
        >>> x = fluid.layers.data("x", [2])
        >>> loss = fluid.layers.mean(x)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> with fluid.tracking.track(Losses()):
        ...     for i in range(2):
        ...         _ = exe.run(feed={"x": np.full((1, 2), i, "float32")}, fetch_list=[loss])
        0 {'mean_0.tmp_0': 0.0}
        1 {'mean_0.tmp_0': 1.0}
    """
    for tracker in trackers:
        if not isinstance(tracker, Tracker):
            raise OpTypeError(
                "track takes trackers.", expected="objects of fluid.tracking, or of a class of Tracker",
                received=repr(tracker)[:80], hint='fluid.tracking.TensorBoard("runs/1") is one.',
            )  # fmt: skip
    tracked = default_main_program() if program is None else program
    names = tuple(v if isinstance(v, str) else v.name for v in watch)
    stepping, number = list(trackers), -1

    def ran(program: Program, scope: Scope) -> None:
        nonlocal number
        if program is not tracked:
            return
        number += 1
        if number % every == 0:
            step = Step(number, _values(program, scope, names), program, scope)
            for tracker in list(stepping):
                try:
                    tracker.step(step)
                except Exception:
                    stepping.remove(tracker)  # one error, not one with each step
                    traceback.print_exc()

    begun: list[Tracker] = []
    how = "failed"
    after_run.append(ran)
    try:
        for tracker in trackers:
            tracker.begin(tracked)
            begun.append(tracker)
        yield
        how = "done"
    except KeyboardInterrupt:
        how = "interrupted"
        raise
    finally:
        after_run.remove(ran)
        for tracker in begun:
            tracker.end(how)


def _values(program: Program, scope: Scope, names: Sequence[str]) -> dict[str, float]:
    """The tracked values of the run that has just ended."""
    lowered = program_state(program.desc).recent[-1]
    held: dict[str, Any] = dict(zip(lowered.fetches, lowered.latest or (), strict=False))
    if not names:
        arrays = {name: array_of(value) if array_of(value) is not None else value for name, value in held.items()}
        held = {name: array for name, array in arrays.items() if getattr(array, "size", 0) == 1}
    for name in names:
        variable = scope.find_var(name)
        if name not in held and variable is not None:
            held[name] = array_of(variable.value)
    numbers = {name: number_of(held.get(name)) for name in names or held}
    return {name: number for name, number in numbers.items() if number is not None}
