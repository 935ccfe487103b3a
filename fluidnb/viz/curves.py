"""Curves that grow while a program trains: thinned out as they get long, drawn as SVG or as one line of bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from fluidnb.viz.spans import COLOURS
from fluidnb.viz.svg import FONT

#: Points kept of a curve; when it is full, neighbours are averaged.
MOST_POINTS = 512
#: Colours of curves in a plot, in order.
PALETTE = (COLOURS["forward"], COLOURS["backward"], COLOURS["optimizer"], "#d97706", "#8b5cf6", "#0891b2")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 520, 170, 58, 24


@dataclass(slots=True)
class Curve:
    """One watched value over the steps of a run.

    Args:
        name: the variable.

    Attributes:
        points: (step, value), averaged over several samples each when there are many; not more than `MOST_POINTS`.
        last: the last value seen.
        count: how many samples there were.

    Example:
        >>> c = Curve("loss")
        >>> for step in range(2000): c.add(step, 1.0)
        >>> len(c.points) <= MOST_POINTS, c.last
        (True, 1.0)
    """

    name: str
    points: list[tuple[float, float]] = field(default_factory=list)
    last: float = math.nan
    count: int = 0
    _stride: int = 1
    _sum: float = 0.0
    _summed: int = 0

    def add(self, step: int, value: float) -> None:
        """Take one sample.

        Args:
            step: the step it belongs to.
            value: the value.
        """
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


def bars(curve: Curve, size: int = 24) -> str:
    """A curve as one line of bars, for terminals.

    Args:
        curve: the curve.
        size: characters at most.

    Returns:
        Bars from the curve's lowest to its highest value; an x where there is no number.

    Example:
        >>> c = Curve("loss")
        >>> for i in range(8): c.add(i, float(8 - i))
        >>> bars(c)
        '█▇▆▅▄▃▂▁'
    """
    values = [v for _, v in curve.points]
    step = max(len(values) / size, 1)
    chosen = [values[min(int(i * step), len(values) - 1)] for i in range(min(size, len(values)))]
    fine = [v for v in chosen if math.isfinite(v)]
    low, high = min(fine, default=0), max(fine, default=0)
    span = high - low or 1
    return "".join("▁▂▃▄▅▆▇█"[round(7 * (v - low) / span)] if math.isfinite(v) else "x" for v in chosen)


def curves_svg(
    curves: Sequence[Curve], steps: int | None = None, first: int = 1, width: int = _WIDTH, mark: int | None = None
) -> str:
    """Curves as one SVG element over one scale, logarithmic where positive values spread over more than a hundredfold.

    Args:
        curves: the curves.
        steps: the steps that the whole run has, when known: the axis goes so far.
        first: the number of the first step on the axis.
        width: of the picture, in pixels.
        mark: a step at which a line stands, counted from the first sample.

    Returns:
        The element's text.

    Example:
        >>> c = Curve("loss")
        >>> c.add(0, 2.0); c.add(1, 1.0)
        >>> curves_svg([c]).count("<title>loss")
        1
    """
    drawn = [c for c in curves if any(math.isfinite(v) for _, v in c.points)]
    last = max([c.points[-1][0] for c in drawn] + [(steps or 0) - 1, 1])
    low, high = _range(drawn)
    scale = math.log10 if low > 0 and high > 100 * low else float
    x_of = (width - _LEFT - 10) / last
    y_of = (_HEIGHT - _BOTTOM - 12) / (scale(high) - scale(low))

    def y_at(value: float) -> float:
        return _HEIGHT - _BOTTOM - (scale(value) - scale(low)) * y_of

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(", ".join(c.name for c in curves))}" '
        f'width="{width}" height="{_HEIGHT}" viewBox="0 0 {width} {_HEIGHT}" font-family="{FONT}" font-size="11" '
        f'fill="currentColor">'
    ]
    for value in _powers(low, high) if scale is math.log10 else _ticks(low, high):
        y = y_at(value)
        parts.append(
            f'<path d="M{_LEFT} {y:.1f}H{width - 10}" stroke="currentColor" stroke-opacity=".15"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill-opacity=".65">{value:.4g}</text>'
        )
    parts.append(
        f'<text x="{_LEFT}" y="{_HEIGHT - 7}" fill-opacity=".65">0</text>'
        f'<text x="{width - 10}" y="{_HEIGHT - 7}" text-anchor="end" fill-opacity=".65">'
        f"step {last + first:,.0f}</text>"
    )
    if mark is not None:
        parts.append(
            f'<path class="mark" d="M{_LEFT + mark * x_of:.1f} 8V{_HEIGHT - _BOTTOM}" stroke="currentColor" '
            f'stroke-opacity=".5"/>'
        )
    for curve, colour in zip(drawn, PALETTE * len(drawn), strict=False):
        path, pen = [], "M"
        for step, value in curve.points:
            if not math.isfinite(value):
                pen = "M"
                continue
            path.append(f"{pen}{_LEFT + step * x_of:.1f} {y_at(value):.1f}")
            pen = "L"
        parts.append(
            f'<g><title>{escape(curve.name)}</title><path d="{"".join(path)}" fill="none" stroke="{colour}" '
            f'stroke-width="1.6" stroke-linejoin="round"/></g>'
        )
    return "".join([*parts, "</svg>"])


def _range(curves: Sequence[Curve]) -> tuple[float, float]:
    values = [v for c in curves for _, v in c.points if math.isfinite(v)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if high <= low:
        return low - max(abs(low), 1) / 2, low + max(abs(low), 1) / 2
    return low, high


def _ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers inside a range."""
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough)
    first = math.ceil(low / step)
    return [i * step for i in range(first, math.floor(high / step) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten inside a range, about six at most."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return [10.0**i for i in range(first, last + 1, (last - first) // 6 + 1)]
