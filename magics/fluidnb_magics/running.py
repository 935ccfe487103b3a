"""Running a program from a magic: feeds, fetched values, training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any

import numpy as np

from fluidnb.data import DataFeeder
from fluidnb.errors import OpValueError
from fluidnb.program import Program, Variable
from fluidnb.runtime import Executor
from fluidnb.viz import lines_html, plain, read_tensor, tensor_lines
from fluidnb.viz.gradients import Gradients
from fluidnb.viz.progress import Progress
from fluidnb.viz.spans import Line


class Fetched(list[Any]):
    """Fetched values; shown with their names, shapes and statistics.

    Args:
        names: the variables.
        values: what was fetched.

    Example:
        >>> Fetched(["loss"], [np.array([0.5], "float32")])
        loss  float32[1]  [0.5]
    """

    def __init__(self, names: Iterable[str], values: Iterable[Any]) -> None:
        super().__init__(values)
        self.names = list(names)

    def lines(self) -> list[Line]:
        """The text face."""
        found: list[Line] = []
        for name, value in zip(self.names, self, strict=True):
            if not hasattr(value, "shape"):
                found.append([(f"{name}  ", "name"), (repr(value), "")])
                continue
            summary = read_tensor(value, name)
            found += tensor_lines(summary)
            if not summary.values and summary.dtype:
                shown = np.array2string(np.asarray(value), precision=4, threshold=40, edgeitems=3, suppress_small=True)
                found += [[("   " + row, "dim")] for row in shown.splitlines()]
        return found

    def __repr__(self) -> str:
        return plain(self.lines())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        return lines_html(self.lines())


def run_steps(
    executor: Executor,
    program: Program,
    feed: Mapping[str, Any],
    fetches: list[Variable],
    steps: int = 1,
    keep: bool = False,
) -> Fetched:
    """Run a program with the same feed.

    Args:
        executor: runs it.
        program: the program.
        feed: variable name -> value.
        fetches: variables whose values are wanted.
        steps: how often to run.
        keep: whether the scopes of the last run stay to look at.

    Returns:
        The values of the last run.
    """
    values: list[Any] = []
    watched = [v for v in fetches if np.prod(v.shape) == 1] if fetches else []
    turns: Iterable[Any] = Progress(repeat(None, steps), watched, total=steps, title="running") if steps > 1 else [None]
    for i, _ in enumerate(turns):
        values = executor.run(
            program, feed=feed, fetch_list=fetches, return_numpy=False, keep_scopes=keep and i == steps - 1
        )
    return Fetched([v.name for v in fetches], values)


def train(
    executor: Executor,
    program: Program,
    reader: Callable[[], Iterable[Any]],
    watch: list[Variable],
    passes: int = 1,
    feed: list[Variable] | None = None,
    gradients: Gradients | None = None,
) -> Progress:
    """Run a program on the batches of a reader and show how far it is.

    Args:
        executor: runs it.
        program: the program.
        reader: gives batches: lists of samples, or dicts from variable name to value.
        watch: variables to fetch and draw.
        passes: how often to go through the reader.
        feed: the variables that a sample has fields for; the program's data variables by default.
        gradients: records the gradients of each step, if given.

    Returns:
        The loop, with its curves.

    Raises:
        OpValueError: there is nothing to feed.
    """
    feeds = data_variables(program) if feed is None else feed
    if not feeds:
        raise OpValueError("the program reads no data.", expected="a variable made by layers.data", hint="%fluid show")
    feeder = DataFeeder(feeds, executor.place, program)
    progress = Progress(reader, watch, passes)
    for batch in progress:
        fed = batch if isinstance(batch, dict) else _fed(feeder, batch)
        if gradients is None:
            executor.run(program, feed=fed, fetch_list=watch)
        else:
            gradients.run(executor, fed, watch)
    return progress


def data_variables(program: Program) -> list[Variable]:
    """The variables of a program that are fed, in the order of their declaration."""
    block = program.global_block()
    return [block.var(name) for name, v in program.desc.blocks[0].vars.items() if v.need_check_feed()]


def _fed(feeder: DataFeeder, batch: Any) -> dict[str, Any]:
    """A batch as a feed: arrays where there is no LoD, which executors take the short way."""
    return {name: t if t.lod_ else np.asarray(t) for name, t in feeder.feed(batch).items()}
