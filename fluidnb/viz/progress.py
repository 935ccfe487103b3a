"""A loop that shows how far it is: bar, rate, time left, and curves of watched values."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import compress, count, islice
from time import perf_counter
from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError
from fluidnb.values.copies import is_on_device
from fluidnb.values.far import FarArray
from fluidnb.viz.curves import Curve
from fluidnb.viz.outlet import Outlet, find_outlet
from fluidnb.viz.progress_faces import State, html_face, text_face

#: Seconds between two updates of the display, at least.
INTERVAL = 0.2
#: The parts of the run's time that sampling and drawing may take.
SAMPLING, DRAWING = 0.006, 0.003


class Progress:
    """The iterator that `progress` gives; it also holds what was seen.

    Args:
        reader: a reader (a callable that gives an iterable), or an iterable.
        watch: what to watch: variables, whose last value known is taken, or callables without arguments.
        passes: how often to go through the reader.
        total: steps of one pass, when known; ``len(reader)`` by default, else known after the first pass.
        title: what is under way.
        outlet: where to show it; found by itself.
        clock: gives the time in seconds.

    Attributes:
        curves: a `Curve` for each watched value.
        step: steps done, over all passes.
        pass_id: the pass under way, from 0.

    Example:
        >>> from fluidnb.viz.outlet import Quiet
        >>> p = Progress([10, 20, 30], passes=2, outlet=Quiet())
        >>> list(p), p.step
        ([10, 20, 30, 10, 20, 30], 6)
    """

    def __init__(
        self,
        reader: Callable[[], Iterable[Any]] | Iterable[Any],
        watch: Any = (),
        passes: int = 1,
        total: int | None = None,
        title: str = "training",
        outlet: Outlet | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        if not callable(reader) and not hasattr(reader, "__iter__"):
            raise OpTypeError(
                "progress goes through a reader.", expected="a reader, or an iterable of batches",
                received=repr(reader)[:80],
            )  # fmt: skip
        watched = watch if isinstance(watch, list | tuple) else [watch]
        self._probes = [_probe(w) for w in watched]
        self.curves = [Curve(name) for name, _ in self._probes]
        self.passes = passes
        self.title = title
        self.step = 0
        self.pass_id = 0
        self._reader, self._clock = reader, clock
        self._steps = total if total is not None else len(reader) if isinstance(reader, Sized) else None
        self._outlet = find_outlet() if outlet is None else outlet
        self._began = self._drawn = clock()
        self._draw_cost = 0.0
        self._sample_costs: deque[float] = deque(maxlen=5)

    def __iter__(self) -> Iterator[Any]:
        self._began = self._clock()
        self._draw()
        done = False
        try:
            for number in range(self.passes):
                self.pass_id, before = number, self.step
                yield from self._one_pass(iter(self._reader() if callable(self._reader) else self._reader))
                self._steps = self.step - before
            done = True
        finally:
            self._draw(last=True, done=done)

    def _one_pass(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Hand out the batches, in chunks between which to look at the clock, so that short steps stay short."""
        numbers = count(1)
        counted = compress(batches, numbers)  # every batch, for no number is 0: the quickest way to count them
        first, peeks, stride = self.step, 0, 1
        while True:
            began = self._clock()
            yield from islice(counted, stride)
            ended = self._clock()
            step = first + next(numbers) - 1 - peeks
            peeks += 1
            took, self.step = step - self.step, step
            if took:
                self._sample()
                now = self._clock()
                self._sample_costs.append(now - ended)
                if now - self._drawn >= max(INTERVAL, self._draw_cost / DRAWING):
                    self._draw()
            if took < stride:
                return
            a_step = max((ended - began) / took, 1e-8)
            # The least of the last costs: a pause of the system, or a first call, says nothing about the next one.
            stride = min(max(1, math.ceil(min(self._sample_costs) / (SAMPLING * a_step))), 2 * stride, 10_000)

    def _sample(self) -> None:
        for curve, (_, value) in zip(self.curves, self._probes, strict=True):
            number = value()
            if number is not None:
                curve.add(self.step - 1, number)

    def _draw(self, last: bool = False, done: bool = False) -> None:
        began = self._clock()
        state = self.state(done)
        self._outlet.show(lambda: text_face(state), lambda: html_face(state), last)
        self._drawn = self._clock()
        self._draw_cost = self._drawn - began

    def state(self, done: bool = False) -> State:
        """What the display shows now.

        Args:
            done: whether the run is over.

        Returns:
            The state, plain data.
        """
        return State(
            self.title, self.step, None if self._steps is None else self._steps * self.passes,
            self.pass_id, self.passes, self._clock() - self._began, self.curves, done,
        )  # fmt: skip


def progress(
    reader: Callable[[], Iterable[Any]] | Iterable[Any],
    watch: Any = (),
    passes: int = 1,
    total: int | None = None,
    title: str = "training",
) -> Progress:
    """Go through a reader and show how far the loop is: bar, rate, time left, and a live plot of watched values.

    The display changes at most five times a second and takes less than a hundredth of the run. It is a plot in a
    notebook, a line in a terminal, plain text where nobody looks (``nbconvert --execute``, a pipe).

    Args:
        reader: a reader (a callable that gives an iterable), or an iterable of batches.
        watch: a Variable or a list of them: the value that the loop fetched last is drawn; or callables that give
            a number.
        passes: how often to go through the reader.
        total: steps of one pass, when known; ``len(reader)`` by default, else known after the first pass.
        title: what is under way.

    Returns:
        An iterable of the batches.

    Raises:
        OpTypeError: the reader, or what to watch, is of another type.

    Example:
        >>> from itertools import repeat
        >>> for batch in progress(repeat(1, 3), title="counting"):
        ...     pass
        counting  ━━━━━━━━━━━━━━━━  3/3 ...
    """
    return Progress(reader, watch, passes, total, title)


def _probe(watched: Any) -> tuple[str, Callable[[], float | None]]:
    """The name of what is watched and a function that gives its value now, None without one."""
    if hasattr(watched, "block") and hasattr(watched, "name"):
        from fluidnb.runtime.latest import latest_held

        return watched.name, lambda: _number(latest_held(watched))
    if callable(watched):
        return getattr(watched, "__name__", "value"), lambda: _number(watched())
    raise OpTypeError(
        "progress watches variables.", expected="a Variable, or a callable that gives a number", received=repr(watched)
    )


def _number(value: Any) -> float | None:
    """A value as one number: of several elements, their mean."""
    if value is None:
        return None
    array: Any = FarArray(value) if is_on_device(value) else np.asarray(value)
    return float(array.item()) if array.size == 1 else float(array.mean()) if array.size else None
