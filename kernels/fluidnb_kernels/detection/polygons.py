"""Rasterization of polygons to masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fluidnb.op import Array
from fluidnb_kernels.sequences import ranges

#: Steps to a pixel while the outline is drawn; a pixel's middle is the third of five.
_FINE = 5


def outline(points: Array) -> tuple[Array, Array]:
    """The outline of a polygon on a grid, from the first corner back to it: x and y of every step, with all corners."""
    start, end = points, np.roll(points, -1, 0)
    reach = np.abs(end - start)
    flat = reach[:, 0] >= reach[:, 1]
    main = np.where(flat, 0, 1)
    edges, steps = np.arange(len(points)), reach.max(1)
    back = start[edges, main] > end[edges, main]
    low, high = (np.where(back[:, None], a, b) for a, b in ((end, start), (start, end)))
    slope = (high - low)[edges, 1 - main] / np.maximum(steps, 1)
    edge = np.repeat(edges, steps + 1)
    walked = ranges(np.zeros_like(steps), steps + 1)
    along = np.where(back[edge], steps[edge] - walked, walked)
    major = low[edge, main[edge]] + along
    minor = np.trunc(low[edge, 1 - main[edge]] + slope[edge] * along + 0.5).astype(np.int64)
    return np.where(flat[edge], major, minor), np.where(flat[edge], minor, major)


def inside(points: Array, size: int) -> Array:
    """The pixels of a square that are inside a polygon.

    Source: Lin et al., "Microsoft COCO" (ECCV 2014), the drawing of masks in its tools.
    """
    x, y = outline(np.trunc(_FINE * points.astype(np.float64) + np.copysign(0.5, points)).astype(np.int64))
    column, rest = np.divmod(np.where(x[1:] < x[:-1], x[1:], x[1:] - 1) - _FINE // 2, _FINE)
    passed = (x[1:] != x[:-1]) & (rest == 0) & (column >= 0) & (column < size)
    above = np.minimum(y[1:], y[:-1])[passed]
    row = np.ceil(np.clip((above + 0.5) / _FINE - 0.5, 0, size)).astype(np.int64)
    changes = np.bincount(column[passed] * size + row, minlength=size * size + 1)[: size * size]
    return (np.cumsum(changes) % 2 == 1).reshape(size, size).T


def bounds(polygons: Sequence[Array]) -> Array:
    """The left, top, right and bottom of polygons; right and bottom are above 0, as in Fluid."""
    points = np.concatenate(polygons)
    return np.concatenate([points.min(0), np.maximum(points.max(0), np.finfo(points.dtype).tiny)])


def mask(polygons: Sequence[Array], box: Array, size: int) -> Array:
    """The part of polygons inside a box, as a square of pixels; a pixel inside any of them counts."""
    sides = np.maximum(box[2:] - box[:2], 1)
    found = [inside((points - box[:2]) * points.dtype.type(size) / sides, size) for points in polygons]
    return np.logical_or.reduce(found)
