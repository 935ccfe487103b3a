"""Training targets of a YOLO feature map from the objects of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb_kernels.detection.yolo_box import sigmoid

Array = Any


@dataclass(frozen=True, slots=True)
class Task:
    """What a feature map is to learn.

    Args:
        anchors: widths and heights of all anchors, in turn, in pixels of the network's input.
        mask: the anchors of this map.
        classes: how many classes there are.
        near: above which overlap with an object a box need not be no object.
        ratio: pixels of the network's input for one place of the map.
        smooth: how much of a label goes to the other classes.
        spread: how far a middle may be from its place.
    """

    anchors: tuple[int, ...]
    mask: tuple[int, ...]
    classes: int
    near: float
    ratio: int
    smooth: float
    spread: float


def _overlaps(one: Array, other: Array) -> Array:
    """Intersection over union of boxes given by middle and size."""
    low = np.maximum(one[..., :2] - one[..., 2:] / 2, other[..., :2] - other[..., 2:] / 2)
    high = np.minimum(one[..., :2] + one[..., 2:] / 2, other[..., :2] + other[..., 2:] / 2)
    size = high - low
    shared = np.where((size < 0).any(-1), 0, size.prod(-1))
    return shared / (one[..., 2:].prod(-1) + other[..., 2:].prod(-1) - shared)


@dataclass(frozen=True, slots=True)
class Targets:
    """The objects that this map learns, one after the other.

    Args:
        spot: image, anchor of the map, row, column of each.
        place: the four numbers that x, y, width, height should be.
        weight: of its place.
        score: of the object.
        labels: [objects, classes].
    """

    spot: tuple[Array, ...]
    place: Array
    weight: Array
    score: Array
    labels: Array


def assign(boxes: Array, scores: Array, task: Task, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """For each object the anchor of the map that learns it, and which objects there are.

    Args:
        boxes: [n, objects, 4]: middle and size, as parts of the image.
        scores: [n, objects].

    Returns:
        int32 [n, objects], -1 for none; bool [n, objects].
    """
    valid = (boxes[..., 2:] >= 1e-6).all(-1)
    sizes = np.array(task.anchors, boxes.dtype).reshape(-1, 2) / boxes.dtype.type(task.ratio * shape[2])
    anchors, own = np.zeros((len(sizes), 4), boxes.dtype), boxes.copy()
    anchors[:, 2:], own[..., :2] = sizes, 0
    own[~valid] = 1
    best = _overlaps(own[:, :, None], anchors).argmax(-1)
    place = np.full(len(sizes), -1, np.int32)
    for k, anchor in reversed(list(enumerate(task.mask))):
        place[anchor] = k
    return np.where(valid, place[best], -1).astype(np.int32), valid


def targets(boxes: Array, labels: Array, scores: Array, match: Array, task: Task, shape: tuple[int, ...]) -> Targets:
    """What the objects of a map should look like.

    Args:
        boxes: [n, objects, 4].
        labels: integers [n, objects].
        scores: [n, objects].
        match: the anchor of each object, -1 for none.
    """
    image, number = np.nonzero(match >= 0)
    box, score, dtype = boxes[image, number], scores[image, number], boxes.dtype.type
    h, w = shape[2:]
    row, column = (box[:, 1] * dtype(h)).astype(np.int64), (box[:, 0] * dtype(w)).astype(np.int64)
    anchor = match[image, number]
    sizes = np.array(task.anchors, boxes.dtype).reshape(-1, 2)[np.array(task.mask)[anchor]]
    place = np.concatenate([box[:, :2] * dtype(h), np.log(box[:, 2:] * dtype(task.ratio * h) / sizes)], 1)
    place[:, 0] -= column
    place[:, 1] -= row
    hot = np.full((len(box), task.classes), task.smooth, boxes.dtype)
    hot[np.arange(len(box)), labels[image, number]] = 1 - task.smooth
    return Targets((image, anchor, row, column), place, (2 - box[:, 2] * box[:, 3]) * score, score, hot)


def ignored(parts: Array, boxes: Array, valid: Array, task: Task) -> Array:
    """Which boxes of a map overlap an object so far that they need not be no object.

    Args:
        parts: the map as [n, anchors, 5 + classes, h, w].
        boxes: [n, objects, 4].

    Returns:
        bool [n, anchors, h, w].
    """
    n, count, _, h, w = parts.shape
    dtype = parts.dtype.type
    move, spread = dtype(-0.5 * (task.spread - 1)), dtype(task.spread)
    rows, columns = np.arange(h, dtype=parts.dtype).reshape(h, 1), np.arange(w, dtype=parts.dtype)
    sizes = np.array(task.anchors, parts.dtype).reshape(-1, 2)[list(task.mask)].reshape(1, count, 2, 1, 1)
    sizes = np.exp(parts[:, :, 2:4]) * sizes / dtype(task.ratio * h)
    own = np.stack([
        (columns + sigmoid(parts[:, :, 0]) * spread + move) / dtype(h),
        (rows + sigmoid(parts[:, :, 1]) * spread + move) / dtype(h), sizes[:, :, 0], sizes[:, :, 1],
    ], -1)  # fmt: skip
    best = np.zeros((n, count, h, w), parts.dtype)
    for k in range(boxes.shape[1]):
        other = boxes[:, k].reshape(n, 1, 1, 1, 4)
        there = valid[:, k].reshape(n, 1, 1, 1)
        best = np.where(there, np.maximum(best, _overlaps(own, np.where(there[..., None], other, 1))), best)
    return best > dtype(task.near)
