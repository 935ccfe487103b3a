"""A progress display of a loop: bar, rate, time left, and curves of watched values."""

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import compress, count, islice
from time import perf_counter
from typing import Any

from fluidnb.data.reader.decorators import samples_of
from fluidnb.errors import OpTypeError
from fluidnb.runtime.last_values import latest_held, number_of
from fluidnb.viz.base.curves import Curve
from fluidnb.viz.base.curves_svg import Trace
from fluidnb.viz.base.display_target import DisplayTarget, find_display_target
from fluidnb.viz.time.progress_renderings import PassRow, State, progress_html, progress_text

#: Seconds between two updates of the display at least.
INTERVAL = 0.2
#: Lines with means of passes at most.
_LINES = 20
#: Operators whose results are fractions of 1.
_SHARES = ("accuracy", "auc", "chunk_eval", "mean_iou", "precision_recall")
#: Fractions of the run time for sampling and drawing.
SAMPLING, DRAWING = 0.006, 0.003
#: How to find the operator behind a value that is not finite.
ADVICE = 'fluid.set_flags({"check_nan_inf": True}) makes runs stop at the first operator that writes NaN or infinity.'


class Progress:
    """The iterator that `progress` returns, with the recorded values.

    Args:
        target: where to display; detected by default.
        after_pass: called at the end of each pass; returns the watched values of a validation.
        smooth: steps over which curves are smoothed in the picture; None chooses automatically.
        advice: what follows a report of NaN or infinity.
    """

    def __init__(
        self, reader: Callable[[], Iterable[Any]] | Iterable[Any], watch: Any = (), passes: int = 1,
        total: int | None = None, title: str = "training", target: DisplayTarget | None = None,
        clock: Callable[[], float] = perf_counter, start: State | None = None,
        after_pass: Callable[[], Mapping[str, float]] | None = None, smooth: int | None = None,
        beside: Sequence[Trace] = (), advice: str = ADVICE,
    ) -> None:  # fmt: skip
        if not callable(reader) and not hasattr(reader, "__iter__"):
            raise OpTypeError(
                "progress needs a reader.", expected="a reader, or an iterable of batches", received=repr(reader)[:80]
            )
        watched = watch if isinstance(watch, list | tuple) else [watch]
        self._probes = [_probe(w) for w in watched]
        before = State(title, 0, None, 0, passes, 0.0) if start is None else start
        earlier = {curve.name: curve for curve in before.curves}
        self.curves = [earlier.get(name) or Curve(name, share) for name, share, _ in self._probes]
        self.tests, self.rows, self.notes = list(before.tests), list(before.rows), list(before.notes)
        self.passes, self.title = passes, title
        self.step = self._taken = before.step
        self.pass_id, self._began_at, self._spent = before.pass_id, before.began, before.seconds
        same = len(before.sums) == len(self.curves)
        self._sums = list(before.sums) if same else [0.0] * len(self.curves)
        self._not_numbers: set[str] = set()
        self._advice = advice
        self._after_pass, self._smooth, self._beside = after_pass, smooth, beside
        self._reader, self._clock = reader, clock
        self._steps = total if total is not None else len(reader) if isinstance(reader, Sized) else None
        if before.total and self._steps is None:
            self._steps = before.total // before.passes
        self._target = find_display_target() if target is None else target
        self._began = self._drawn = self._pass_began = clock()
        self._draw_cost = 0.0
        self._sample_costs: deque[float] = deque(maxlen=5)

    def __iter__(self) -> Generator[Any, None, None]:
        self._began = self._clock()
        self._draw()
        done = False
        try:
            for number in range(self.pass_id, self.passes):
                self.pass_id, self._pass_began = number, self._clock()
                batches = samples_of(self._reader) if callable(self._reader) else iter(self._reader)
                done_before = self.step - self._began_at
                if batches is not self._reader:  # an interrupted pass is continued after its last step
                    deque(islice(batches, done_before), maxlen=0)
                yield from self._one_pass(batches)
                self._steps = self.step - self._began_at
                self._end_pass()
            done = True
        finally:
            self.step = max(self.step, self._taken)
            self._draw(last=True, done=done)
            if self._not_numbers:  # the first report may have scrolled away
                for note in self.notes:
                    self._target.line(note)

    def _end_pass(self) -> None:
        """Records the means of a pass and the values of its validation."""
        known = self._steps if self._taken == self.step else 0
        means = tuple((c.name, s / known) for c, s in zip(self.curves, self._sums, strict=True)) if known else ()
        seconds = self._clock() - self._pass_began
        tests = () if self._after_pass is None else tuple(self._after_pass().items())
        by_name, shares = {c.name: c for c in self.tests}, {c.name: c.share for c in self.curves}
        for name, value in tests:
            if name not in by_name:
                by_name[name] = Curve(name, shares.get(name, False))
                self.tests.append(by_name[name])
            by_name[name].add(self.step - 1, value)
        row = PassRow(self.pass_id + 1, self.step, seconds, means, tests)
        self.rows.append(row)
        every = -(-self.passes // _LINES)
        if (means or tests) and (row.number % every == 0 or row.number == self.passes):
            self._target.line(row.text)
        self._began_at, self._sums = self.step, [0.0] * len(self.curves)

    def take(self, values: Sequence[Any]) -> None:
        """Adds the watched values of a step, for exact means and to detect NaN."""
        self._taken += 1
        for i, value in enumerate(values):
            number = number_of(value)
            self._sums[i] += math.nan if number is None else number
            if number is not None and not math.isfinite(number):
                self._note(self.curves[i].name, number, f"since step {self._taken:,}")

    def _note(self, name: str, value: float, when: str) -> None:
        """Reports a non-finite value once, with how to find its operator."""
        if name not in self._not_numbers:
            self._not_numbers.add(name)
            note = f"{name} is {value} {when} (pass {self.pass_id + 1})"
            self.notes = [*(n for n in self.notes if n != self._advice), note, self._advice]
            self._target.line(note)
            self._draw()

    def _one_pass(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yields the batches in chunks; the clock is read between chunks to keep the overhead small."""
        numbers = count(1)
        counted = compress(batches, numbers)  # counts the batches with the least overhead
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
            # The minimum of the last costs, as a system pause or a first call does not predict the next cost.
            stride = min(max(1, math.ceil(min(self._sample_costs) / (SAMPLING * a_step))), 2 * stride, 10_000)

    def _sample(self) -> None:
        for curve, (_, _, value) in zip(self.curves, self._probes, strict=True):
            number = value()
            if number is not None:
                curve.add(self.step - 1, number)
                if not math.isfinite(number):
                    self._note(curve.name, number, f"by step {self.step:,}")

    def _draw(self, last: bool = False, done: bool = False) -> None:
        began = self._clock()
        state = self.state(done)
        self._target.show(lambda: progress_text(state), lambda: progress_html(state), last)
        self._drawn = self._clock()
        self._draw_cost = self._drawn - began

    def state(self, done: bool = False) -> State:
        """The displayed state as plain data."""
        return State(
            self.title, self.step, None if self._steps is None else self._steps * self.passes,
            self.pass_id, self.passes, self._spent + self._clock() - self._began, self.curves, done,
            self.tests, self.rows, self.notes, self._began_at, self._sums, self._smooth, self._beside,
        )  # fmt: skip


def progress(
    reader: Callable[[], Iterable[Any]] | Iterable[Any], watch: Any = (), passes: int = 1, total: int | None = None,
    title: str = "training",
) -> Progress:  # fmt: skip
    """Iterates over a reader and displays progress: bar, rate, time left, and a live plot of watched values.

    The display is updated at most five times a second and takes less than 1% of the run. It is a plot in a
    notebook, a line in a terminal, and plain text elsewhere (``nbconvert --execute``, a pipe).

    Args:
        reader: a reader (a callable that returns an iterable), or an iterable of batches.
        watch: a Variable or a list of them, whose last fetched value is drawn; or callables that return a number.
        passes: number of passes over the reader.
        total: steps of one pass, when known; ``len(reader)`` by default, else known after the first pass.
        title: title of the display.

    Returns:
        An iterable of the batches.

    Example:
        >>> from itertools import repeat
        >>> for batch in progress(repeat(1, 3), title="counting"):
        ...     pass
        counting  ━━━━━━━━━━━━━━━━  3/3 ...
    """
    return Progress(reader, watch, passes, total, title)


def _probe(watched: Any) -> tuple[str, bool, Callable[[], float | None]]:
    """(name, whether it is a fraction of 1, function of its current value or None) of a watched value."""
    if hasattr(watched, "block") and hasattr(watched, "name"):
        writers = (op.optype for op in watched.block.desc.ops if watched.name in op.output_arg_names())
        return watched.name, any(map(_SHARES.__contains__, writers)), lambda: number_of(latest_held(watched))
    if callable(watched):
        return getattr(watched, "__name__", "value"), False, lambda: number_of(watched())
    raise OpTypeError(
        "progress cannot watch this value.", expected="a Variable, or a callable that returns a number",
        received=repr(watched),
    )  # fmt: skip
