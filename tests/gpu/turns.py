"""Those who do the same work take turns, so that the moods of a machine hit all alike; how their times are judged."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """The amount of measuring.

    Args:
        on_gpu: whether there is a GPU, or an emulator in place of it.
        small: whether sizes are those for an emulator.
        rounds: turns of each side.
        seconds: of work in a turn, at least one step.
    """

    on_gpu: bool = True
    small: bool = False
    rounds: int = 21
    seconds: float = 0.06

    @property
    def judged(self) -> bool:
        """Whether times mean anything."""
        return self.on_gpu and not self.small


def turns(runs: Mapping[str, Callable[[], object]], effort: Effort) -> dict[str, float]:
    """The seconds of a step, by the clock: the median of each side's turns.

    Args:
        runs: side -> makes a step and waits for its result; the steps that come first have been made.
        effort: how much is measured.

    Returns:
        Side -> seconds.

    Example:
        >>> sorted(turns({"a": list, "b": dict}, Effort(rounds=3, seconds=0.001)))
        ['a', 'b']
    """
    steps = {name: _steps(run, effort.seconds) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(effort.rounds):
        for name in runs if number % 2 == 0 else reversed(list(runs)):
            times[name].append(_timed(runs[name], steps[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def _steps(run: Callable[[], object], seconds: float) -> int:
    """The number of steps that fill a turn."""
    return max(1, int(seconds / min(_timed(run, 1) for _ in range(3)))) if seconds else 1


def _timed(run: Callable[[], object], steps: int) -> float:
    start = time.perf_counter()
    for _ in range(steps):
        run()
    return (time.perf_counter() - start) / steps


def verdict(found: float, bound: float, judged: bool) -> str:
    """The figure that was reached, and whether that is enough.

    Args:
        found: a multiple of another one's time.
        bound: how much at most.
        judged: whether it means anything.

    Example:
        >>> verdict(0.5, 1.0, True), verdict(1.5, 1.0, True), verdict(1.5, 1.0, False)
        ('0.50x, met', '1.50x, MISSED', '1.50x')
    """
    return f"{found:.2f}x" + (f", {'met' if found <= bound else 'MISSED'}" if judged else "")
