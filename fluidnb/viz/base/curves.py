"""Curves of training values: downsampled as they grow, smoothed, drawn as one line of bars."""

import math
from dataclasses import dataclass, field

from fluidnb.viz.base.styled_text import COLOURS

#: Points of a curve at most; when it is full, neighbours are averaged.
MOST_POINTS = 512
#: Colours of curves in a plot, in order.
PALETTE = (COLOURS["forward"], COLOURS["backward"], COLOURS["optimizer"], "#d97706", "#8b5cf6", "#0891b2")


@dataclass(slots=True)
class Curve:
    """One watched value over the steps of a run."""

    name: str
    share: bool = False  # whether it is a fraction of 1, such as an accuracy; it has a separate axis
    # (step, value), averaged over several samples each when there are many; not more than `MOST_POINTS`
    points: list[tuple[float, float]] = field(default_factory=list)
    last: float = math.nan  # the last value seen
    count: int = 0  # number of samples
    _stride: int = 1
    _sum: float = 0.0
    _summed: int = 0

    def add(self, step: int, value: float) -> None:
        """Adds one sample."""
        self.last = value
        self.count += 1
        self._sum += value
        self._summed += 1
        if self._summed < self._stride:
            return
        self.points.append((step, self._sum / self._summed))
        self._sum, self._summed = 0.0, 0
        if len(self.points) >= MOST_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [(b[0], (a[1] + b[1]) / 2) for a, b in pairs]
            self._stride *= 2


def smoothed(curve: Curve, steps: int | None = None) -> list[tuple[float, float]]:
    """A curve's running mean over some steps; None takes a fiftieth of a curve of 100 points or more."""
    points = curve.points
    if steps is None:
        count = len(points) // 50 if len(points) >= 100 else 1
    else:
        span = (points[-1][0] - points[0][0]) / (len(points) - 1) if len(points) > 1 else 1
        count = round(steps / max(span, 1))
    if count <= 1:
        return points
    means, window, total = [], list[float](), 0.0
    for step, value in points:
        if not math.isfinite(value):  # the mean restarts after it
            window.clear()
            total = 0.0
            means.append((step, value))
            continue
        window.append(value)
        total += value
        if len(window) > count:
            total -= window.pop(0)
        means.append((step, total / len(window)))
    return means


def bars(curve: Curve, size: int = 24) -> str:
    """A curve as a line of bars from its lowest to its highest value, x where it is not finite."""
    values = [v for _, v in curve.points]
    step = max(len(values) / size, 1)
    chosen = [values[min(int(i * step), len(values) - 1)] for i in range(min(size, len(values)))]
    fine = [v for v in chosen if math.isfinite(v)]
    low, high = min(fine, default=0), max(fine, default=0)
    span = high - low or 1
    return "".join("▁▂▃▄▅▆▇█"[round(7 * (v - low) / span)] if math.isfinite(v) else "x" for v in chosen)


def sparkline(counts: tuple[int, ...] | list[float]) -> str:
    """Numbers as a row of bars, the largest one full.

    Example:
        >>> sparkline((0, 1, 4, 8))
        ' ▁▄█'
    """
    top = max(counts, default=0) or 1
    return "".join(" ▁▂▃▄▅▆▇█"[round(8 * c / top)] for c in counts)
