"""Finding boxes in images written out plainly, to hold the operators against."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray


def overlap(a: Any, b: Any, more: float = 0) -> float:
    """The intersection over the union of two boxes."""
    wide = min(a[2], b[2]) - max(a[0], b[0]) + more
    high = min(a[3], b[3]) - max(a[1], b[1]) + more
    shared = max(wide, 0) * max(high, 0)
    both = sum((v[2] - v[0] + more) * (v[3] - v[1] + more) for v in (a, b))
    return shared / (both - shared)


def align(x: Array, roi: Array, sizes: tuple[int, int], ratio: int, aligned: bool = False) -> Array:
    """One region of one image [c, h, w], point by point."""
    left, top, right, bottom = roi - 0.5 * aligned
    wide, high = right - left, bottom - top
    if not aligned:
        wide, high = max(wide, 1), max(high, 1)
    rows, columns = sizes
    down, across = (ratio or math.ceil(high / rows)), (ratio or math.ceil(wide / columns))
    out = np.zeros((len(x), *sizes))
    for i, j, k, m in np.ndindex(rows, columns, down, across):
        y = top + (i + (k + 0.5) / down) * high / rows
        z = left + (j + (m + 0.5) / across) * wide / columns
        out[:, i, j] += pixel(x, y, z) / (down * across)
    return out


def pixel(x: Array, y: float, z: float) -> Array:
    """An image at a point, linearly between pixels; 0 from a pixel outside on."""
    h, w = x.shape[1:]
    if not (-1 <= y <= h and -1 <= z <= w):
        return np.zeros(len(x))
    y, z = min(max(y, 0), h - 1), min(max(z, 0), w - 1)
    y0, z0 = int(y), int(z)
    y1, z1 = min(y0 + 1, h - 1), min(z0 + 1, w - 1)
    top = x[:, y0, z0] * (1 - z + z0) + x[:, y0, z1] * (z - z0)
    low = x[:, y1, z0] * (1 - z + z0) + x[:, y1, z1] * (z - z0)
    return top * (1 - y + y0) + low * (y - y0)


def pooled(x: Array, roi: Array, sizes: tuple[int, int]) -> tuple[Array, Array]:
    """The largest pixel of each part of one region of one image, and its place."""
    left, top, right, bottom = (math.floor(v + 0.5) for v in roi)
    h, w = x.shape[1:]
    out, spots = np.zeros((len(x), *sizes)), np.full((len(x), *sizes), -1)
    for i, j in np.ndindex(*sizes):
        high, wide = max(bottom - top + 1, 1) / sizes[0], max(right - left + 1, 1) / sizes[1]
        best = {c: (0.0, -1) for c in range(len(x))}
        for y in range(max(top + math.floor(i * high), 0), min(top + math.ceil((i + 1) * high), h)):
            for z in range(max(left + math.floor(j * wide), 0), min(left + math.ceil((j + 1) * wide), w)):
                for c in range(len(x)):
                    if best[c][1] < 0 or x[c, y, z] > best[c][0]:
                        best[c] = x[c, y, z], y * w + z
        for c, (value, spot) in best.items():
            out[c, i, j], spots[c, i, j] = value, spot
    return out, spots


def suppressed(boxes: Array, scores: Array, limit: float, least: float, background: int = 0) -> list[list[float]]:
    """Rows of class, score, box: greedily, class by class."""
    rows = []
    for k, line in enumerate(scores):
        kept: list[int] = []
        for i in sorted(range(len(line)), key=lambda n: -line[n]):
            if k != background and line[i] > least and all(overlap(boxes[i], boxes[m]) <= limit for m in kept):
                kept.append(i)
                rows.append([k, line[i], *boxes[i]])
    return rows


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def yolo_boxes(
    x: Array, sizes: Array, anchors: list[int], classes: int, ratio: int, least: float
) -> tuple[Array, Array]:
    """Boxes and scores of a map, place by place."""
    n, _, h, w = x.shape
    count = len(anchors) // 2
    parts = x.reshape(n, count, 5 + classes, h, w)
    boxes, scores = np.zeros((n, count, h, w, 4)), np.zeros((n, count, h, w, classes))
    for b, a, i, j in np.ndindex(n, count, h, w):
        tx, ty, tw, th, sure, *rates = parts[b, a, :, i, j]
        if sigmoid(sure) >= least:
            high, wide = sizes[b]
            cx, cy = (j + sigmoid(tx)) / w * wide, (i + sigmoid(ty)) / h * high
            bw = np.exp(tw) * anchors[2 * a] / (ratio * w) * wide
            bh = np.exp(th) * anchors[2 * a + 1] / (ratio * h) * high
            boxes[b, a, i, j] = (max(cx - bw / 2, 0), max(cy - bh / 2, 0),
                                 min(cx + bw / 2, wide - 1), min(cy + bh / 2, high - 1))  # fmt: skip
            scores[b, a, i, j] = sigmoid(np.array(rates)) * sigmoid(sure)
    return boxes.reshape(n, -1, 4), scores.reshape(n, -1, classes)


def _cross(x: float, label: float) -> float:
    p = sigmoid(x)
    return float(-label * np.log(p) - (1 - label) * np.log(1 - p))


def _corners(x: float, y: float, w: float, h: float) -> tuple[float, float, float, float]:
    return x - w / 2, y - h / 2, x + w / 2, y + h / 2


def yolo_loss(
    x: Array, boxes: Array, labels: Array, rates: Array, anchors: list[int], mask: list[int], near: float, smooth: float
) -> tuple[Array, Array, Array]:
    """Losses, what each box is to be, and the anchors of the objects; object by object and box by box."""
    n, _, size, _ = x.shape
    parts = x.reshape(n, len(mask), -1, size, size)
    whole = 32 * size
    losses, objects = np.zeros(n), np.zeros((n, len(mask), size, size))
    match = np.full(boxes.shape[:2], -1)
    real = [[box for box in row if box[2] > 0] for row in boxes]
    for b, a, i, j in np.ndindex(*objects.shape):
        tx, ty, tw, th = parts[b, a, :4, i, j]
        w, h = np.exp(tw) * anchors[2 * mask[a]] / whole, np.exp(th) * anchors[2 * mask[a] + 1] / whole
        own = _corners((j + sigmoid(tx)) / size, (i + sigmoid(ty)) / size, w, h)
        if any(overlap(own, _corners(*box)) > near for box in real[b]):
            objects[b, a, i, j] = -1
    for b, t in np.ndindex(*match.shape):
        cx, cy, w, h = boxes[b, t]
        if w == 0:
            continue
        sizes = [_corners(0, 0, anchors[2 * k] / whole, anchors[2 * k + 1] / whole) for k in range(len(anchors) // 2)]
        best = int(np.argmax([overlap(_corners(0, 0, w, h), s) for s in sizes]))
        if best not in mask:
            continue
        a, i, j = mask.index(best), int(cy * size), int(cx * size)
        match[b, t], objects[b, a, i, j], score = a, rates[b, t], rates[b, t]
        tx, ty, tw, th, _, *classes = parts[b, a, :, i, j]
        place = _cross(tx, cx * size - j) + _cross(ty, cy * size - i)
        place += abs(tw - np.log(w * whole / anchors[2 * best])) + abs(th - np.log(h * whole / anchors[2 * best + 1]))
        losses[b] += place * (2 - w * h) * score
        for k, value in enumerate(classes):
            losses[b] += _cross(value, 1 - smooth if k == labels[b, t] else smooth) * score
    for spot in np.ndindex(*objects.shape):
        sure, what = parts[spot[0], spot[1], 4, spot[2], spot[3]], objects[spot]
        losses[spot[0]] += _cross(sure, 1) * what if what > 0 else _cross(sure, 0) if what == 0 else 0
    return losses, objects, match
