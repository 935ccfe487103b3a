"""multiclass_nms, multiclass_nms2: of boxes that overlap, the one with the highest score of its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, op
from fluidnb_kernels.detection.boxes import overlaps
from fluidnb_kernels.detection.polygon_overlaps import polygon_overlaps
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sequences import all_given, as_level, require_lod

Array = Any

#: Rows of the matrix of overlaps that are computed at once, so that its memory grows with the boxes, not their square.
_ROWS = 128
#: Numbers of a box: its left, top, right and bottom, or the corners of a polygon.
_WIDTHS = (4, 8, 16, 24, 32)


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds and counts that select boxes.

    Args:
        background: a class that does not count; -1 for none.
        score: what a score must exceed.
        first: how many boxes of a class are kept before NMS, the highest scores first; -1 for all.
        overlap: above which overlap with a better box a box goes.
        eta: factor of the overlap after each box that stays, while it is above 1/2.
        most: how many boxes of an image stay in the end; -1 for all.
        normalized: whether boxes end at right and bottom, or behind the pixel there.
    """

    background: int
    score: float
    first: int
    overlap: float
    eta: float
    most: int
    normalized: bool


def falling(scores: Array) -> Array:
    """The order from the highest score to the lowest; equal ones as they come.

    Args:
        scores: [n].

    Example:
        >>> falling(np.array([1.0, 3.0, 3.0]))
        array([1, 2, 0])
    """
    return np.argsort(-scores, kind="stable")


def suppress(boxes: Array, scores: Array, limits: Limits) -> Array:
    """The boxes of one class that stay, the highest score first.

    Args:
        boxes: [n, 4].
        scores: [n].

    Returns:
        Their numbers.
    """
    spots = np.flatnonzero(scores > scores.dtype.type(limits.score))
    spots = spots[falling(scores[spots])]
    if limits.first > -1:
        spots = spots[: limits.first]
    chosen, plain = boxes[spots], boxes.shape[1] == 4
    flat = (chosen[:, 2:] < chosen[:, :2]).any(1) if plain else None
    kept: list[int] = []
    limit, covered = np.float32(limits.overlap), np.zeros(len(spots), boxes.dtype)
    for first in range(0, len(spots), _ROWS):
        block, left = slice(first, first + _ROWS), covered[first:]
        if flat is not None:
            shared = overlaps(chosen[block], chosen[first:], limits.normalized)
            shared[flat[block]], shared[:, flat[first:]] = 0, 0
        for i in range(len(chosen[block])):
            if left[i] <= limit:
                kept.append(first + i)
                row = shared[i] if plain else polygon_overlaps(chosen[first + i], chosen[first:])
                np.maximum(left, row, out=left)
                if limits.eta < 1 and limit > 0.5:
                    limit *= np.float32(limits.eta)
    return spots[kept]


def of_image(boxes: Array, scores: Array, limits: Limits) -> tuple[Array, Array]:
    """The boxes of an image that stay, class by class.

    Args:
        boxes: [n, 4], or [n, classes, 4].
        scores: [classes, n].

    Returns:
        Their classes and their numbers.
    """
    labels, spots = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for k, row in enumerate(scores):
        if k != limits.background:
            kept = suppress(boxes if boxes.ndim == 2 else boxes[:, k], row, limits)
            labels.append(np.full(len(kept), k))
            spots.append(kept)
    label, spot = np.concatenate(labels), np.concatenate(spots)
    if -1 < limits.most < len(spot):
        best = falling(scores[label, spot])[: limits.most]
        best = best[np.argsort(label[best], kind="stable")]
        label, spot = label[best], spot[best]
    return label, spot


def detect(boxes: Array, scores: Array, lod: tuple[int, ...], limits: Limits) -> list[tuple[Array, Array]]:
    """For each image the boxes that stay as rows of class, score and box, and their numbers.

    Args:
        boxes: [images, n, 4], or [n, classes, 4] with offsets of images.
        scores: [images, classes, n], or [n, classes].
    """
    found = []
    if lod:
        images = [(a, boxes[a:z], scores[a:z].T) for a, z in zip(lod[:-1], lod[1:], strict=True)]
    else:
        images = [(i * boxes.shape[1], boxes[i], scores[i]) for i in range(len(boxes))]
    for first, own, score in images:
        label, spot = of_image(own, score, limits)
        if lod:  # class by class, in the order of the boxes
            order = np.lexsort((spot, label))
            label, spot = label[order], spot[order]
        chosen = own[spot] if own.ndim == 2 else own[spot, label]
        rows = np.concatenate([label[:, None].astype(own.dtype), score[label, spot][:, None], chosen], 1)
        number = first + spot if own.ndim == 2 else (first + spot) * own.shape[1] + label
        found.append((rows, number))
    return found


def write_detected(
    boxes: Array, scores: Array, lod: tuple[int, ...], limits: Limits, out: Array | None, index: Array | None
) -> None:
    """Write what `detect` gives; a row of -1 where nothing was found and there is no index.

    Args:
        boxes: see `detect`.
        scores: see `detect`.
        lod: see `detect`.
        limits: see `detect`.
        out: the rows, written, or None.
        index: the numbers, written, or None.
    """
    found = detect(boxes, scores, lod, limits)
    if out is not None:
        rows = np.concatenate([row for row, _ in found])
        out[...] = rows if len(rows) else -1
    if index is not None:
        index[:, 0] = np.concatenate([number for _, number in found])


def _limits(c: Context) -> Limits:
    return Limits(
        c.attr("background_label"), c.attr("score_threshold"), c.attr("nms_top_k"), c.attr("nms_threshold"),
        c.attr("nms_eta"), c.attr("keep_top_k"), c.attr("normalized"),
    )  # fmt: skip


def _lod(c: Context) -> tuple[int, ...]:
    """The offsets of the images where boxes come class by class."""
    return tuple(c.lod("BBoxes")[-1]) if c["Scores"].ndim == 2 else ()


def _counts(c: Context) -> tuple[int, ...]:
    """How many boxes of each image stay."""
    if not all_given(c, "BBoxes", "Scores"):
        return ()
    return tuple(len(rows) for rows, _ in detect(c["BBoxes"], c["Scores"], _lod(c), _limits(c)))


def _infer(c: Context) -> None:
    name, boxes, scores = c.definition.type, c["BBoxes"], c["Scores"]
    widths = (4, -1) if scores.ndim == 2 else (*_WIDTHS, -1)
    c.require(
        boxes.ndim == 3 and boxes.shape[2] in widths, f"Input(BBoxes) of {name} must hold boxes.",
        expected="[images, boxes, 4, or for polygons 8, 16, 24 or 32]; or [boxes, classes, 4]",
        received=list(boxes.shape),
    )  # fmt: skip
    width = boxes.shape[2] + 2 if boxes.shape[2] != -1 else 6
    wanted = [boxes.shape[0], "classes", boxes.shape[1]] if scores.ndim != 2 else list(boxes.shape[:2])
    have = list(scores.shape)
    c.require(
        len(have) == len(wanted)
        and all(isinstance(n, str) or n == m or -1 in (n, m) for n, m in zip(wanted, have, strict=True)),
        f"Input(Scores) of {name} must have a score for each box and class.", expected=wanted, received=have,
    )  # fmt: skip
    if scores.ndim == 2:
        require_lod(c, "BBoxes")
    if not c.runtime:
        c.set("Out", (-1, width), boxes.dtype, (None,))
        return c.set("Index", (-1, 1), np.int32, (None,))
    level = as_level(_counts(c))
    empty = level[-1] == 0 and "Index" not in c.definition.outputs
    c.set("Out", (1, 1) if empty else (level[-1], width), boxes.dtype, ((0, 1) if empty else level,))
    return c.set("Index", (level[-1], 1), np.int32, (level,))


_DOC = """Rows of class, score, left, top, right, bottom: boxes with the highest scores that do not overlap each other.

    Class by class, boxes whose score exceeds ``score_threshold`` are taken from the highest score on, ``nms_top_k`` of
    them; one goes if its overlap (intersection over union) with one that stays is above ``nms_threshold``. Of all
    classes the ``keep_top_k`` best stay. In a class the highest score comes first; where boxes are given class by
    class, their own order stays. {empty}

    Example:
        >>> from fluidnb.testing import run_op
        >>> boxes = [[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [2.0, 2.0, 3.0, 3.0]]]
        >>> scores, all_of_them = [[[0.5, 0.9, 0.7]]], {{"nms_top_k": -1, "keep_top_k": -1, "background_label": -1}}
        >>> out = run_op("{type}", {{"BBoxes": boxes, "Scores": scores}}, {{"score_threshold": 0.1, **all_of_them}})
        >>> {out}.array[:, 1]
        array([0.9, 0.7])

    Source: Fluid's multiclass_nms_op.
    """


def _define(type: str, empty: str, more: dict[str, str]) -> None:
    @op(
        type,
        inputs={
            "BBoxes: float[images, n, corners] | float[n, classes, 4] lod":
                "left, top, right, bottom; or x and y of each of 4, 8, 12 or 16 corners",
            "Scores: float[images, classes, n] | float[n, classes]": "scores",
        },
        outputs={"Out": "[boxes, 6, for polygons 10 or more], a sequence for each image", **more},
        attrs={
            "background_label": Attr("int", 0, "a class that does not count; -1 for none"),
            "score_threshold": Attr("float", doc="what a score must exceed"),
            "nms_top_k": Attr("int", doc="how many boxes of a class are kept before NMS; -1 for all"),
            "nms_threshold": Attr("float", 0.3, "above which overlap with a better box a box goes"),
            "nms_eta": Attr("float", 1.0, "factor of nms_threshold after each box that stays, while it is above 1/2"),
            "keep_top_k": Attr("int", doc="how many boxes of an image stay in the end; -1 for all"),
            "normalized": Attr("bool", True, "whether boxes end at right and bottom, or behind the pixel there"),
        },
        infer=_infer,
        guard=_counts,
        data_shape=True,
        host_only="searches step by step: each step depends on the one before",
        dtypes=FLOATS,
        doc=_DOC.format(type=type, empty=empty, out='out["Out"]'),
    )
    def nms(b: Binder) -> None:
        b(write_detected, b["BBoxes"], b["Scores"], _lod(b), _limits(b), b["Out"], b["Index"])


_define("multiclass_nms", "Where none stays, Out is [[-1]].", {})
_define(
    "multiclass_nms2", "Where none stays, Out has no row.",
    {"Index~": "int32 [boxes, 1]: which of all boxes each row is, a sequence for each image"},
)  # fmt: skip
