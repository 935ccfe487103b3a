"""Running a program from a magic: feeds, fetched values, runs that change nothing."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import numpy as np

from fluidnb.program import Program, Variable
from fluidnb.runtime import Executor, global_scope
from fluidnb.runtime.interpreter.checkpoint import Checkpoint
from fluidnb.runtime.run_numbers import coming_run, count_from
from fluidnb.viz import lines_html, plain, read_tensor, tensor_lines
from fluidnb.viz.base.styled_text import Line


class Fetched(list[Any]):
    """Fetched values; shown with their names, shapes and statistics."""

    def __init__(self, names: Iterable[str], values: Iterable[Any]) -> None:
        super().__init__(values)
        self.names = list(names)

    def lines(self) -> list[Line]:
        """The text rendering."""
        lines: list[Line] = []
        for name, value in zip(self.names, self, strict=True):
            if not hasattr(value, "shape"):
                lines.append([(f"{name}  ", "name"), (repr(value), "")])
                continue
            summary = read_tensor(value, name)
            lines += tensor_lines(summary)
            if not summary.values and summary.dtype:
                shown = np.array2string(np.asarray(value), precision=4, threshold=40, edgeitems=3, suppress_small=True)
                lines += [[("   " + row, "dim")] for row in shown.splitlines()]
        return lines

    def __repr__(self) -> str:
        return plain(self.lines())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        return lines_html(self.lines())


def run_steps(
    executor: Executor, program: Program, feed: Mapping[str, Any], fetches: list[Variable], steps: int = 1,
    keep: bool = False,
) -> Fetched:  # fmt: skip
    """Run a program some times with the same feed."""
    values: list[Any] = []
    watched = [v for v in fetches if np.prod(v.shape) == 1] if fetches else []
    turns: Iterable[Any] = [None]
    if steps > 1:
        from fluidnb.viz.time.progress import Progress  # and readers, which one run does not need

        turns = Progress(repeat(None, steps), watched, total=steps, title="running")
    for i, _ in enumerate(turns):
        values = executor.run(
            program, feed=feed, fetch_list=fetches, return_numpy=False, keep_scopes=keep and i == steps - 1
        )
    return Fetched([v.name for v in fetches], values)


@contextmanager
def without_change(
    executor: Executor, program: Program, feed: Mapping[str, Any], fetches: list[Variable]
) -> Iterator[None]:
    """Runs inside change nothing: parameters, readers and random numbers are as before when they are over."""
    scope = global_scope()
    plan, _ = executor.prepare(program, feed, fetches, scope)
    before, number = Checkpoint(plan, scope), coming_run(plan, program, scope)
    try:
        yield
    finally:
        before.restore()
        count_from(program, scope, number)
