"""Polygons: clipping, areas, and the overlaps of one with another."""

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


def polygon_overlaps(one: Array, others: Array) -> Array:
    """Computes the intersection over the union of a polygon and each of several others; 0 for those without an area.

    A polygon is a row of x and y of each corner, in order.
    """
    corners = one.size // 2
    a, b = (v.astype(np.float64).reshape(-1, corners, 2) for v in (one, others))
    shared, union = shared_areas(a, b), areas(a) + areas(b)
    some = (shared > 0) & (areas(a) > 0) & (areas(b) > 0)
    return (np.where(some, shared, 0) / np.where(some, union - shared, 1)).astype(others.dtype)


def areas(polygons: Array) -> Array:
    """The areas of polygons [n, corners, 2] by the shoelace formula."""
    (x, y), (u, v) = np.moveaxis(polygons, -1, 0), np.moveaxis(np.roll(polygons, -1, 1), -1, 0)
    return np.abs((x * v - y * u).sum(-1)) / 2


def shared_areas(a: Array, b: Array) -> Array:
    """Computes the area that a polygon [1, corners, 2] shares with each of several others [n, corners, 2].

    The plane is cut into bands at the height of every corner and of every crossing of edges. Inside a band all edges
    are straight and none cross, so the shared width is linear, and its middle times the height is the exact area.
    """
    n = len(b)
    heights = [np.broadcast_to(a[..., 1], (n, a.shape[1])), b[..., 1], _crossings(a, b)]
    level = np.sort(np.concatenate(heights, 1), 1)
    middle = (level[:, 1:] + level[:, :-1]) / 2
    beyond = max(np.abs(a[..., 0]).max(), np.abs(b[..., 0]).max(initial=0)) + 1
    ours, theirs = _spans(a, middle, beyond), _spans(b, middle, beyond)
    width = np.zeros_like(middle)
    for left, right in ours:
        for start, end in theirs:
            width += np.maximum(np.minimum(right, end) - np.maximum(left, start), 0)
    return (width * np.diff(level, axis=1)).sum(1)


def _crossings(a: Array, b: Array) -> Array:
    """The heights at which edges of two polygons cross [n, corners²]; where two do not, that of some corner."""
    p, q = a[:, :, None], b[:, None]
    r, s = np.roll(a, -1, 1)[:, :, None] - p, np.roll(b, -1, 1)[:, None] - q
    cross = r[..., 0] * s[..., 1] - r[..., 1] * s[..., 0]
    parallel = cross == 0
    step = q - p
    safe = np.where(parallel, 1, cross)
    t = (step[..., 0] * s[..., 1] - step[..., 1] * s[..., 0]) / safe
    u = (step[..., 0] * r[..., 1] - step[..., 1] * r[..., 0]) / safe
    meet = ~parallel & (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
    height = np.where(meet, p[..., 1] + t * r[..., 1], p[..., 1])
    return height.reshape(len(b), a.shape[1] * b.shape[1])


def _spans(polygons: Array, height: Array, beyond: float) -> list[tuple[Array, Array]]:
    """The left and right ends of polygons at some heights [n, bands]; ``beyond`` for none."""
    start, end = polygons[:, None], np.roll(polygons, -1, 1)[:, None]
    y = height[..., None]
    passes = (start[..., 1] > y) != (end[..., 1] > y)
    rise = np.where(passes, end[..., 1] - start[..., 1], 1)
    x = start[..., 0] + (y - start[..., 1]) / rise * (end[..., 0] - start[..., 0])
    x = np.sort(np.where(passes, x, beyond), -1)
    return [(x[..., k], x[..., k + 1]) for k in range(0, x.shape[-1] - 1, 2)]
