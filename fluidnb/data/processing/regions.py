"""Regions of text in a map of probabilities: connected pixels, and the smallest rectangle around them, enlarged."""

from typing import NamedTuple

import numpy as np

#: The shortest edge of a rectangle in pixels, before it is enlarged; afterwards two more.
_LEAST = 3


class Region(NamedTuple):
    """A region of text with its score and its four corners as (x, y), clockwise from the upper left one."""

    score: float
    corners: tuple[tuple[float, float], ...]

    def __str__(self) -> str:
        return f"{self.score:.4f}  " + " ".join(f"({x:.1f}, {y:.1f})" for x, y in self.corners)

    def resized(self, old: tuple[int, int], new: tuple[int, int]) -> "Region":
        """The region in an image of another size, with whole corners inside it.

        Args:
            old: height and width of the map.
            new: height and width of the image.
        """
        factors = new[1] / old[1], new[0] / old[0]
        moved = np.clip(np.round(np.array(self.corners) * factors), 0, (new[1], new[0]))
        return Region(self.score, tuple((float(x), float(y)) for x, y in moved))


def regions(
    probability: np.ndarray, thresh: float = 0.3, box_thresh: float = 0.7, max_candidates: int = 1000,
    unclip_ratio: float = 2.0, dilate: bool = False, whole: bool = False,
) -> list[Region]:  # fmt: skip
    """Finds regions of text.

    Args:
        probability: float of (height, width), whether a pixel is text.
        thresh: pixels above it are text.
        box_thresh: the least mean probability of a region.
        max_candidates: how many regions are looked at, from the top.
        unclip_ratio: each edge of a rectangle moves outwards by this times its area / perimeter.
        dilate: whether text also covers the pixels to the right and below of it.
        whole: whether the score is the mean over the region's pixels; else over those in the rectangle.

    Example:
        >>> text = np.zeros((20, 30)); text[5:11, 4:25] = 0.9
        >>> print(*regions(text))
        0.9000  (0.0, 1.0) (28.0, 1.0) (28.0, 14.0) (0.0, 14.0)
    """
    mask = probability > thresh
    if dilate:
        mask[:, 1:] |= mask[:, :-1].copy()
        mask[1:] |= mask[:-1].copy()
    found = []
    for rows, starts, ends in _components(mask)[:max_candidates]:
        ends_of_runs = np.concatenate([np.stack([starts, rows], 1), np.stack([ends, rows], 1)]).astype(np.float64)
        corners = smallest_rectangle(ends_of_runs)
        width, height = _edges(corners)
        if min(width, height) < _LEAST:
            continue
        score = _mean_of_runs(probability, rows, starts, ends) if whole else _mean_inside(probability, corners)
        if score < box_thresh:
            continue
        apart = width * height * unclip_ratio / (2 * (width + height))
        corners = _enlarged(corners, apart)
        if min(_edges(corners)) >= _LEAST + 2:
            found.append(Region(score, tuple((float(x), float(y)) for x, y in corners)))
    return found


def _components(mask: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The groups of pixels that touch, corners included: rows, first and last columns of their runs."""
    height, width = mask.shape
    padded = np.zeros((height, width + 2), np.int8)
    padded[:, 1:-1] = mask
    steps = np.diff(padded, axis=1)
    rows, starts = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1] - 1
    pitch = width + 3  # so that a run touches none of another row
    low = np.searchsorted(rows * pitch + ends, (rows - 1) * pitch + starts - 1, "left")
    high = np.searchsorted(rows * pitch + starts, (rows - 1) * pitch + ends + 1, "right")
    group = list(range(len(rows)))
    for i, (first, last) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        for j in range(first, last):
            a, b = _root(group, i), _root(group, j)
            group[max(a, b)] = min(a, b)
    roots = np.array([_root(group, i) for i in range(len(group))], np.int64)
    order = np.argsort(roots, kind="stable")
    cuts = np.nonzero(np.diff(roots[order]))[0] + 1
    return [(rows[part], starts[part], ends[part]) for part in np.split(order, cuts) if part.size]


def _root(group: list[int], i: int) -> int:
    """The first run of a group; ways to it become shorter."""
    while group[i] != i:
        group[i] = group[group[i]]
        i = group[i]
    return i


def _hull(points: np.ndarray) -> np.ndarray:
    """The corners of the convex hull, in order."""
    listed = sorted({(float(x), float(y)) for x, y in points})
    if len(listed) < 3:
        return np.array(listed)

    def half(ordered: list[tuple[float, float]]) -> list[tuple[float, float]]:
        chain: list[tuple[float, float]] = []
        for x, y in ordered:
            while len(chain) > 1:
                (ax, ay), (bx, by) = chain[-2:]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    return np.array(half(listed) + half(listed[::-1]))


def smallest_rectangle(points: np.ndarray) -> np.ndarray:
    """Corners of the rectangle with the smallest area around points, clockwise from the upper left one.

    An edge of it lies on an edge of the convex hull.

    Args:
        points: float of (points, 2), x and y.

    Example:
        >>> smallest_rectangle(np.array([[0.0, 2.0], [4.0, 0.0], [4.0, 2.0], [0.0, 0.0], [2.0, 1.0]])) + 0.0
        array([[0., 0.],
               [4., 0.],
               [4., 2.],
               [0., 2.]])
    """
    hull = _hull(points)
    along = np.roll(hull, -1, 0) - hull
    length = np.hypot(*along.T)
    along = along[length > 0] / length[length > 0, None]
    if not len(along):
        return np.repeat(hull[:1], 4, 0)
    across = np.stack([-along[:, 1], along[:, 0]], 1)
    u, v = along @ hull.T, across @ hull.T
    area = np.ptp(u, axis=1) * np.ptp(v, axis=1)
    best = int(area.argmin())
    (left, right), (top, bottom) = ((each[best].min(), each[best].max()) for each in (u, v))
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
    return _ordered(corners @ np.stack([along[best], across[best]]))


def _ordered(corners: np.ndarray) -> np.ndarray:
    """Four corners clockwise: the upper one of the two on the left, then that of the two on the right."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = (two[np.argsort(two[:, 1], kind="stable")] for two in (by_x[:2], by_x[2:]))
    return np.array([left[0], right[0], right[1], left[1]])


def _edges(corners: np.ndarray) -> tuple[float, float]:
    """The lengths of two edges that meet."""
    return float(np.hypot(*(corners[1] - corners[0]))), float(np.hypot(*(corners[3] - corners[0])))


def _enlarged(corners: np.ndarray, apart: float) -> np.ndarray:
    """A rectangle whose edges move outwards."""
    middle = corners.mean(0)
    right, down = corners[1] - corners[0], corners[3] - corners[0]
    right, down = (each / np.hypot(*each) for each in (right, down))
    sides = (corners - middle) @ np.stack([right, down], 1)
    found: np.ndarray = middle + (sides + np.sign(sides) * apart) @ np.stack([right, down])
    return found


def _mean_of_runs(probability: np.ndarray, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> float:
    """The mean over the pixels of some runs."""
    parts = [probability[y, x : end + 1] for y, x, end in zip(rows, starts, ends, strict=True)]
    return float(np.concatenate(parts).mean())


def _mean_inside(probability: np.ndarray, corners: np.ndarray) -> float:
    """The mean over the pixels whose middles a rectangle contains, its edges included."""
    height, width = probability.shape
    (x0, y0), (x1, y1) = np.floor(corners.min(0)).astype(int), np.ceil(corners.max(0)).astype(int)
    x0, y0, x1, y1 = max(x0, 0), max(y0, 0), min(x1, width - 1), min(y1, height - 1)
    y, x = np.mgrid[y0 : y1 + 1, x0 : x1 + 1]
    middle = corners.mean(0)
    inside = np.ones(y.shape, bool)
    for edge in (corners[1] - corners[0], corners[3] - corners[0]):
        length = np.hypot(*edge)
        at = ((x - middle[0]) * edge[0] + (y - middle[1]) * edge[1]) / length
        inside &= np.abs(at) <= length / 2 + 1e-6
    return float(probability[y0 : y1 + 1, x0 : x1 + 1][inside].mean())
