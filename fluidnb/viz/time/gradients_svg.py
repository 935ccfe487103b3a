"""SVG rendering of gradients over training: a heat map of parameters over steps."""

import math

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.curves import Curve
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import COLOURS, cut_text
from fluidnb.viz.base.svg import CHAR, new_uid, svg_element
from fluidnb.viz.time.gradients import GradientPicture, gradient_lines

_PLOT, _ROW, _TOP, _BOTTOM = 560, 18, 46, 26
#: Columns drawn at most; neighbours are merged by their maximum.
_COLUMNS = 140
_SMALL = CHAR * 11 / 12


def gradients_svg(picture: GradientPicture, uid: str = "") -> str:
    """Two heat maps, of gradients and of updates, in one SVG element.

    Opacity is the norm on a logarithmic scale; amber is NaN or infinity.
    """
    uid = uid or new_uid()
    left = min(max((len(row.name) for row in picture.rows), default=4), 32) * _SMALL + 14
    high = _TOP + len(picture.rows) * _ROW + _BOTTOM
    parts = (
        f'<g id="{uid}{what}">{_map(picture, what, COLOURS[role], left, k * high)}</g>'
        for k, (what, role) in enumerate((("gradient", "backward"), ("update", "optimizer")))
    )
    label, width = f"gradients over {picture.steps} steps", left + _PLOT + 12
    return svg_element(parts, label, width, 2 * high, uid=f"{uid}gradients", font=11, style="white-space:pre")


def gradients_html(picture: GradientPicture, uid: str = "") -> str:
    """HTML rendering: the heat maps, and the numbers below."""
    table = lines_html(gradient_lines(picture))
    return (
        f'<div class="fluidnb" style="line-height:normal"><div style="overflow:auto">'
        f"{gradients_svg(picture, uid)}</div><details><summary>as lines</summary>{table}</details></div>"
    )


def _map(picture: GradientPicture, what: str, colour: str, left: float, top: float) -> str:
    low, high = picture.range(what)
    parts = [
        f'<text x="1" y="{top + 15}" font-weight="700" fill="{colour}">{what}</text>',
        f'<text x="{left:.0f}" y="{top + 15}" font-size="10" fill-opacity=".7">{low:.1e}</text>',
    ]
    parts += [
        f'<rect x="{left + 56 + 10 * i:.0f}" y="{top + 6}" width="10" height="10" fill="{colour}" '
        f'fill-opacity="{0.08 + 0.92 * i / 11:.2f}"/>'
        for i in range(12)
    ]
    parts.append(f'<text x="{left + 182:.0f}" y="{top + 15}" font-size="10" fill-opacity=".7">{high:.1e}</text>')
    for i, row in enumerate(picture.rows):
        y = top + _TOP - 14 + i * _ROW
        name = cut_text(row.name, 32)
        parts.append(f'<text x="{left - 8:.0f}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        parts += _cells(getattr(row, what), row.name, colour, (low, high), (left, y))
    y = top + _TOP - 14 + len(picture.rows) * _ROW + 14
    parts.append(
        f'<text x="{left:.0f}" y="{y}" font-size="10" fill-opacity=".6">step 1</text>'
        f'<text x="{left + _PLOT:.0f}" y="{y}" font-size="10" fill-opacity=".6" text-anchor="end">'
        f"step {picture.steps:,}</text>"
    )
    return "".join(parts)


def _cells(curve: Curve, name: str, colour: str, scale: tuple[float, float], at: tuple[float, float]) -> list[str]:
    points = curve.points
    count = min(len(points), _COLUMNS)
    wide = _PLOT / max(count, 1)
    parts = []
    for i in range(count):
        group = points[i * len(points) // count : (i + 1) * len(points) // count]
        values = [v for _, v in group]
        bad = any(not math.isfinite(v) for v in values)
        value = max((v for v in values if math.isfinite(v)), default=0.0)
        fill = f'fill="{"#d97706" if bad else colour}" fill-opacity="{1 if bad else _strength(value, *scale):.2f}"'
        parts.append(
            f'<rect x="{at[0] + i * wide:.1f}" y="{at[1] + 1:.0f}" width="{wide:.2f}" height="{_ROW - 2}" {fill}>'
            f"<title>{escape(name)}, step {group[-1][0] + 1:.0f}: {'NaN or infinite' if bad else f'{value:.3g}'}"
            f"</title></rect>"
        )
    frame = f'x="{at[0]:.1f}" y="{at[1] + 1:.0f}" width="{_PLOT}" height="{_ROW - 2}"'
    return [*parts, f'<rect {frame} fill="none" stroke="currentColor" stroke-opacity=".25"/>']


def _strength(value: float, low: float, high: float) -> float:
    """The opacity of a value."""
    if value <= 0:
        return 0.0
    if high <= low:
        return 0.6
    return 0.08 + 0.92 * min(max(math.log(value / low) / math.log(high / low), 0), 1)
