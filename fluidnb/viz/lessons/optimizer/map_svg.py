"""SVG map of a surface with the paths of optimizers over contour lines."""

from base64 import b64encode
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.curves import PALETTE
from fluidnb.viz.base.png import png
from fluidnb.viz.base.svg import new_uid, svg_element
from fluidnb.viz.lessons.optimizer.choices import SURFACES, Surface
from fluidnb.viz.lessons.optimizer.model import OptimizerLesson, Point, Track, heights

WIDTH, HEIGHT = 430, 300
#: Number of contour lines, and the colour of the surface: more opaque where it is lower.
_BANDS, _GROUND = 16, (84, 110, 160)
#: Margin outside the picture within which a path is drawn, in widths of the picture.
_FAR = 3.0


def optimizer_map_svg(lesson: OptimizerLesson, step: int, focus: int = 0) -> str:
    """SVG map of a lesson."""
    surface, uid = SURFACES[lesson.surface], new_uid()
    parts = [
        f'<clipPath id="{uid}clip"><rect width="{WIDTH}" height="{HEIGHT}" rx="5"/></clipPath>'
        f'<g clip-path="url(#{uid}clip)"><image width="{WIDTH}" height="{HEIGHT}" preserveAspectRatio="none" '
        f'href="{_contours(lesson.surface)}"/>'
    ]
    for i in sorted(range(len(lesson.tracks)), key=lambda i: i == focus):
        parts += _path(surface, lesson.tracks[i], step, PALETTE[i % len(PALETTE)], i == focus)
    (x0, x1), (y0, y1) = surface.x, surface.y
    x, y = _at(surface, surface.start)
    dim = 'fill-opacity=".75"'
    parts.append(
        f'<path d="M{x - 5:.1f} {y:.1f}h10M{x:.1f} {y - 5:.1f}v10" stroke="currentColor"><title>start</title></path>'
        f'</g><text x="1" y="{HEIGHT + 15}" {dim}>x from {x0:g} to {x1:g}, y from {y0:g} to {y1:g}</text>'
        f'<text x="{WIDTH - 1}" y="{HEIGHT + 15}" text-anchor="end" {dim}>bluer is lower</text>'
    )
    return svg_element(parts, f"{lesson.surface} after {step} steps", WIDTH, HEIGHT + 22, font=11)


def _at(surface: Surface, point: Point) -> Point:
    (x0, x1), (y0, y1) = surface.x, surface.y
    return (point[0] - x0) / (x1 - x0) * WIDTH, (y1 - point[1]) / (y1 - y0) * HEIGHT


def _path(surface: Surface, track: Track, step: int, colour: str, focus: bool) -> Iterator[str]:
    places = []
    for x, y in (_at(surface, p) for p in track.points[: step + 1]):
        if not (abs(x) < _FAR * WIDTH and abs(y) < _FAR * HEIGHT):
            break
        places.append((x, y))
    if not places:
        return
    line = "".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(places))
    wide, clear = (2.4, 1) if focus else (1.7, 0.85)
    yield (
        f'<g><title>{escape(track.choice.title)}</title><path class="way" d="{line}" fill="none" stroke="{colour}" '
        f'stroke-width="{wide}" stroke-opacity="{clear}" stroke-linejoin="round"/>'
    )
    if focus:
        yield from (f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.3" fill="{colour}"/>' for x, y in places[:-1])
    if len(places) == step + 1:
        x, y = places[-1]
        yield (
            f'<circle class="here" cx="{x:.1f}" cy="{y:.1f}" r="{6 if focus else 4.5}" fill="{colour}" '
            f'stroke="#fff" stroke-width="1.5"/>'
        )
    yield "</g>"


@lru_cache(maxsize=8)
def _contours(name: str) -> str:
    """The contour image of a surface as a data URL; its program computes the heights."""
    surface = SURFACES[name]
    xs = np.linspace(*surface.x, WIDTH, dtype="float32")
    ys = np.linspace(surface.y[1], surface.y[0], HEIGHT, dtype="float32")
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    values = heights(name, grid).reshape(HEIGHT, WIDTH).astype("float64")
    low, high = values.min(), values.max()
    level = ((values - low) / (high - low)) ** 0.4 * _BANDS  # denser where it is flat
    return "data:image/png;base64," + b64encode(png(_pixels(level))).decode()


def _pixels(level: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Bands with contour lines, transparent to suit light and dark pages."""
    band = np.floor(np.minimum(level, _BANDS - 1e-6))
    out = np.empty((*level.shape, 4), "uint8")
    out[..., :3] = _GROUND
    out[..., 3] = np.round(20 + 120 * (1 - band / _BANDS) ** 1.5)
    away = np.abs(level - np.round(level)) / (np.hypot(*np.gradient(level)) + 1e-9)  # from a line, in pixels
    line = np.round(4 * np.clip(1.2 - away, 0, 1)) / 4
    out[..., 3] = np.round(out[..., 3] * (1 - line) + 170 * line)
    return out
