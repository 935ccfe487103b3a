"""Curves as SVG: two axes, smoothing, and the values under the pointer, without a script."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.curves import PALETTE, Curve, smoothed
from fluidnb.viz.base.styled_text import legible
from fluidnb.viz.base.svg import CHAR, svg_element

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _LINE = 540, 150, 62, 24, 15
#: Positions at most that show their values.
_POSITIONS = 96
#: Shows the values of a step while the pointer is over it.
_STYLE = (
    "<style>.fluidnb-at>g,svg:has(.fluidnb-at:hover)>.fluidnb-legend{visibility:hidden}"
    ".fluidnb-at:hover>g{visibility:visible}</style>"
)


@dataclass(frozen=True, slots=True)
class Trace:
    """One curve of a picture."""

    curve: Curve
    label: str  # its name in the legend
    colour: str
    dots: bool = False  # whether it has values at some steps only, such as a validation


def traces(curves: Sequence[Curve], tests: Sequence[Curve] = ()) -> list[Trace]:
    """Assigns colours to curves; a validation has the colour of its curve."""
    colours = dict(zip((c.name for c in curves), PALETTE * (len(curves) // len(PALETTE) + 1), strict=False))
    return [
        *(Trace(c, c.name, colours[c.name]) for c in curves),
        *(Trace(c, f"test {c.name}", colours.get(c.name, PALETTE[0]), True) for c in tests),
    ]


def curves_svg(
    curves: Sequence[Curve | Trace], steps: int | None = None, first: int = 1, width: int = _WIDTH,
    mark: int | None = None, smooth: int | None = 1,
) -> str:  # fmt: skip
    """Curves as one SVG element; the axis is logarithmic for positive values over more than two decades.

    Accuracies and other fractions have the axis on the right. Hovering shows the values of a step.

    Args:
        steps: the steps of the whole run, when known: the end of the axis.
        first: the number of the first step on the axis.
        mark: a step to mark by a vertical line, counted from the first sample.
        smooth: steps over which a running mean is drawn, over the paler curve itself; None chooses automatically.
    """
    all_traces = [t for c in curves for t in ([c] if isinstance(c, Trace) else [])]
    all_traces += traces([c for c in curves if isinstance(c, Curve)])
    drawn = [t for t in all_traces if any(math.isfinite(v) for _, v in t.curve.points)]
    left, right = [t for t in drawn if not t.curve.share], [t for t in drawn if t.curve.share]
    if not left:
        left, right = right, []
    last = max([t.curve.points[-1][0] for t in drawn] + [(steps or 0) - 1, 1])
    shown = {id(t): t.curve.points if t.dots else smoothed(t.curve, smooth) for t in drawn}
    top = _LINE * (_labels(drawn, width)[-1][0] + 1 if drawn else 1) + 8
    axes = [_Axis(side, top) for side in (left, right) if side]
    end = width - (_LEFT if right else 12)
    x_of = (end - _LEFT) / last
    height = top + _HEIGHT + _BOTTOM
    parts = [tick for number, axis in enumerate(axes) for tick in axis.ticks(end, number == 1)]
    parts.append(
        f'<text x="{_LEFT}" y="{height - 7}" fill-opacity=".75">0</text>'
        f'<text x="{end}" y="{height - 7}" text-anchor="end" fill-opacity=".75">step {last + first:,.0f}</text>'
    )
    if mark is not None:
        parts.append(
            f'<path class="mark" d="M{_LEFT + mark * x_of:.1f} {top}V{top + _HEIGHT}" stroke="currentColor" '
            f'stroke-opacity=".5"/>'
        )
    for trace in drawn:
        axis = axes[1] if right and trace.curve.share else axes[0]
        parts.append(_drawn(trace, shown[id(trace)], axis, x_of))
    parts += _positions(drawn, shown, x_of, top, width, first)
    return svg_element(parts, ", ".join(t.label for t in all_traces), width, height, style="max-width:none")


class _Axis:
    """The vertical axis of some curves, below ``top``."""

    def __init__(self, side: Sequence[Trace], top: float) -> None:
        self._low, self._high = _range([t.curve for t in side])
        self._log = self._low > 0 and self._high > 100 * self._low
        self._top = top

    def y(self, value: float) -> float:
        low, high, value = (math.log10(v) if self._log else v for v in (self._low, self._high, value))
        return self._top + _HEIGHT - 4 - (value - low) * (_HEIGHT - 8) / (high - low)

    def ticks(self, end: float, right: bool) -> list[str]:
        """Its labels, and grid lines for the left axis."""
        parts = []
        for value in _powers(self._low, self._high) if self._log else _ticks(self._low, self._high):
            y = self.y(value)
            if not right:
                parts.append(f'<path d="M{_LEFT} {y:.1f}H{end}" stroke="currentColor" stroke-opacity=".15"/>')
            x, anchor = (end + 6, "start") if right else (_LEFT - 6, "end")
            parts.append(f'<text x="{x}" y="{y + 4:.1f}" text-anchor="{anchor}" fill-opacity=".75">{value:.4g}</text>')
        return parts


def _drawn(trace: Trace, points: Sequence[tuple[float, float]], axis: _Axis, x_of: float) -> str:
    """One curve; where it is smoothed, the raw curve in a paler colour behind it."""
    colour = trace.colour
    parts = [f"<g><title>{escape(trace.label)}</title>"]
    if trace.dots:
        parts += [
            f'<circle cx="{_LEFT + step * x_of:.1f}" cy="{axis.y(value):.1f}" r="3.2" fill="{colour}"/>'
            for step, value in points
            if math.isfinite(value)
        ]
    elif points is not trace.curve.points:
        parts.append(
            f'<path d="{_path(trace.curve.points, axis, x_of)}" fill="none" stroke="{colour}" stroke-opacity=".3"/>'
        )
    dashes = ' stroke-dasharray="4 3"' if trace.dots else ""
    parts.append(
        f'<path d="{_path(points, axis, x_of)}" fill="none" stroke="{colour}" stroke-width="1.6" '
        f'stroke-linejoin="round"{dashes}/></g>'
    )
    return "".join(parts)


def _path(points: Sequence[tuple[float, float]], axis: _Axis, x_of: float) -> str:
    path, pen = [], "M"
    for step, value in points:
        if not math.isfinite(value):
            pen = "M"
            continue
        path.append(f"{pen}{_LEFT + step * x_of:.1f} {axis.y(value):.1f}")
        pen = "L"
    return "".join(path)


def _labels(drawn: Sequence[Trace], width: int) -> list[tuple[int, bool]]:
    """For the value of each curve at one step: its line of text, and whether it begins that line."""
    limit, row, used = int((width - 8) / CHAR), 0, 14
    places = []
    for trace in drawn:
        size = len(trace.label) + 12
        begins = used + size > limit
        row, used = (row + 1, size) if begins else (row, used + size)
        places.append((row, begins))
    return places


def _positions(
    drawn: Sequence[Trace], shown: Mapping[int, Sequence[tuple[float, float]]], x_of: float, top: float, width: int,
    first: int,
) -> list[str]:  # fmt: skip
    """Hover areas along the axis that show the values of a step."""
    steps = sorted({step for points in shown.values() for step, _ in points})
    stride = len(steps) // _POSITIONS + 1
    steps = steps[::-stride][::-1]
    at = {key: [step for step, _ in points] for key, points in shown.items()}
    labels = _labels(drawn, width)
    parts = [_STYLE]
    for i, step in enumerate(steps):
        x = _LEFT + step * x_of
        begin = _LEFT + (steps[i - 1] + step) / 2 * x_of if i else _LEFT - 4
        end = _LEFT + (steps[i + 1] + step) / 2 * x_of if i + 1 < len(steps) else x + 8
        text = [f'<text x="4" y="12">step {step + first:,.0f}']
        for trace, (row, begins) in zip(drawn, labels, strict=True):
            points = shown[id(trace)]
            value = points[min(bisect_left(at[id(trace)], step), len(points) - 1)][1]
            text += [f'</text><text x="4" y="{12 + row * _LINE}">'] * begins
            gap = "" if begins else ' dx="10"'
            text.append(f"<tspan{gap} {legible(trace.colour)}>{escape(trace.label)}</tspan> {value:.4g}")
        parts.append(
            f'<g class="fluidnb-at"><rect x="{begin:.1f}" y="{top}" width="{max(end - begin, 0):.1f}" '
            f'height="{_HEIGHT}" fill="none" pointer-events="all"/><g><path d="M{x:.1f} {top}v{_HEIGHT}" '
            f'stroke="currentColor" stroke-opacity=".4"/>{"".join(text)}</text></g></g>'
        )
        legend = f'<g class="fluidnb-legend">{"".join(text)}</text></g>'  # of the last step, without hover
    if steps:
        parts.append(legend)
    return parts


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
