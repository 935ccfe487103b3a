"""Speedups over the number of trainers: a table as text, curves with two logarithmic axes as SVG."""

import math
from collections.abc import Mapping, Sequence

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.curves import PALETTE
from fluidnb.viz.base.display_object import Picture
from fluidnb.viz.base.styled_text import Line, legible
from fluidnb.viz.base.svg import svg_element

#: Name of a curve -> (trainers, speedup) for each point.
Speedups = Mapping[str, Sequence[tuple[int, float]]]

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _LINE = 540, 240, 48, 12, 36, 16


def scaling_picture(speedups: Speedups) -> Picture:
    """Speedups of several trainings over the number of trainers, with the line of a perfect speedup.

    Args:
        speedups: name of a curve -> its points (trainers, speedup), both positive.

    Example:
        >>> print(scaling_picture({"sync": [(1, 0.9), (8, 4.0)], "async": [(8, 6.5)]}))
        trainers   sync  async
               1    0.9
               8    4.0    6.5
    """
    return Picture(_lines(speedups), lambda: scaling_svg(speedups))


def _lines(speedups: Speedups) -> list[Line]:
    names = list(speedups)
    sizes = [max(len(name), 5) + 2 for name in names]
    values = {name: dict(points) for name, points in speedups.items()}
    head = "trainers" + "".join(f"{name:>{size}}" for name, size in zip(names, sizes, strict=True))
    lines: list[Line] = [[(head, "dim")]]
    for trainers in sorted({n for points in speedups.values() for n, _ in points}):
        cells = [
            f"{values[name][trainers]:{size}.1f}" if trainers in values[name] else " " * size
            for name, size in zip(names, sizes, strict=True)
        ]
        lines.append([(f"{trainers:8}{''.join(cells)}".rstrip(), "")])
    return lines


def scaling_svg(speedups: Speedups) -> str:
    """The curves of `scaling_picture` as one SVG element."""
    points = [point for row in speedups.values() for point in row]
    most = max((max(point) for point in points), default=1.0)
    decades = max(1, math.ceil(math.log10(most) - 1e-9))
    low = min(0.0, math.floor(math.log10(min((speedup for _, speedup in points), default=1.0))))
    width, height = _WIDTH - _LEFT - 150, _HEIGHT - _TOP - _BOTTOM

    def at(trainers: float, speedup: float) -> tuple[float, float]:
        x = _LEFT + math.log10(trainers) / decades * width
        return x, _TOP + height - (math.log10(speedup) - low) / (decades - low) * height

    parts = []
    for power in range(int(low), decades + 1):
        _, y = at(1, 10**power)
        parts.append(
            f'<path d="M{_LEFT} {y:.1f}h{width}" stroke="currentColor" stroke-opacity=".15"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill-opacity=".75">{10**power:g}</text>'
        )
        if power >= 0:
            x, _ = at(10**power, 1)
            parts.append(
                f'<text x="{x:.1f}" y="{_HEIGHT - 20}" text-anchor="middle" fill-opacity=".75">{10**power:g}</text>'
            )
    (x0, y0), (x1, y1) = at(1, 1), at(10**decades, 10**decades)
    parts.append(
        f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="currentColor" stroke-opacity=".5" '
        'stroke-dasharray="4 3"/>'
        f'<text x="{_LEFT + width / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle" fill-opacity=".75">trainers</text>'
        f'<text x="{_LEFT + width + 14}" y="{_TOP + 8}" fill-opacity=".75">perfect speedup, dashed</text>'
    )
    for i, (name, row) in enumerate(speedups.items()):
        colour = PALETTE[i % len(PALETTE)]
        path = "L".join("{:.1f} {:.1f}".format(*at(*point)) for point in sorted(row))
        dots = "".join('<circle cx="{:.1f}" cy="{:.1f}" r="2.6"/>'.format(*at(*point)) for point in row)
        parts.append(
            f'<g fill="{colour}"><title>{escape(name)}</title><path d="M{path}" fill="none" stroke="{colour}" '
            f'stroke-width="1.6"/>{dots}</g><text x="{_LEFT + width + 14}" y="{_TOP + 8 + (i + 1) * _LINE}" '
            f"{legible(colour)}>{escape(name)}</text>"
        )
    return svg_element(parts, "speedup over trainers: " + ", ".join(speedups), _WIDTH, _HEIGHT)
