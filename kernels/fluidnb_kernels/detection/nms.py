"""multiclass_nms, its second and third version: of boxes that overlap, the one with the highest score of its class."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.detection.boxes import overlaps
from fluidnb_kernels.detection.polygons import polygon_overlaps
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import attributes
from fluidnb_kernels.sequences import all_given, require_lod, sized, slices

#: Rows of the matrix of overlaps that are computed at once, so that its memory grows with the boxes, not their square.
_ROWS = 128
#: Numbers of a box: its left, top, right and bottom, or the corners of a polygon.
_WIDTHS = (4, 8, 16, 24, 32)


def falling(scores: Array) -> Array:
    """The order from the highest score to the lowest, stable."""
    return np.argsort(-scores, kind="stable")


def of_boxes(x: Array, y: Array, normalized: bool) -> Array:
    """Overlaps of boxes [n, 4] and [m, 4]; 0 where one is no box, or where they only touch by the pixel behind."""
    shared = overlaps(x, y, normalized)
    flat = [(v[:, 2:] < v[:, :2]).any(1) for v in (x, y)]
    apart = (y[:, :2] > x[:, None, 2:]) | (x[:, None, :2] > y[:, 2:])
    shared[flat[0][:, None] | flat[1] | apart.any(2)] = 0
    return shared


def suppress(boxes: Array, scores: Array, how: Any) -> Array:
    """The boxes of one class left by non-maximum suppression, the highest score first."""
    spots = np.flatnonzero(scores > scores.dtype.type(how.score_threshold))
    spots = spots[falling(scores[spots])]
    if how.nms_top_k > -1:
        spots = spots[: how.nms_top_k]
    chosen, plain = boxes[spots], boxes.shape[1] == 4
    kept: list[int] = []
    limit, covered = np.float32(how.nms_threshold), np.full(len(spots), -np.inf, boxes.dtype)  # the first one stays
    for first in range(0, len(spots), _ROWS):
        block, left = slice(first, first + _ROWS), covered[first:]
        shared = of_boxes(chosen[block], chosen[first:], how.normalized) if plain else None
        for i in range(len(chosen[block])):
            if left[i] <= limit:
                kept.append(first + i)
                row = shared[i] if shared is not None else polygon_overlaps(chosen[first + i], chosen[first:])
                np.maximum(left, row, out=left)
                if how.nms_eta < 1 and limit > 0.5:
                    limit *= np.float32(how.nms_eta)
    return spots[kept]


def of_image(boxes: Array, scores: Array, how: Any) -> tuple[Array, Array]:
    """The boxes of an image that are left, class by class; boxes [n, 4] or [n, classes, 4], scores [classes, n]."""
    labels, spots = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for k, row in enumerate(scores):
        if k != how.background_label:
            kept = suppress(boxes if boxes.ndim == 2 else boxes[:, k], row, how)
            labels.append(np.full(len(kept), k))
            spots.append(kept)
    label, spot = np.concatenate(labels), np.concatenate(spots)
    if -1 < how.keep_top_k < len(spot):
        best = falling(scores[label, spot])[: how.keep_top_k]
        best = best[np.argsort(label[best], kind="stable")]
        label, spot = label[best], spot[best]
    return label, spot


def detect(boxes: Array, scores: Array, lod: tuple[int, ...], how: Any) -> list[tuple[Array, Array]]:
    """For each image the boxes that are left, as rows of class, score and box, and their numbers.

    Boxes and scores are [images, n, 4] and [images, classes, n], or [n, classes, 4] and [n, classes] with offsets.
    """
    found = []
    if lod:
        images = [(part.start, boxes[part], scores[part].T) for part in slices(lod)]
    else:
        images = [(i * boxes.shape[1], boxes[i], scores[i]) for i in range(len(boxes))]
    for first, own, score in images:
        label, spot = of_image(own, score, how)
        if lod:  # class by class, in the order of the boxes
            order = np.lexsort((spot, label))
            label, spot = label[order], spot[order]
        chosen = own[spot] if own.ndim == 2 else own[spot, label]
        rows = np.concatenate([label[:, None].astype(own.dtype), score[label, spot][:, None], chosen], 1)
        number = first + spot if own.ndim == 2 else (first + spot) * own.shape[1] + label
        found.append((rows, number))
    return found


def write_detected(
    boxes: Array, scores: Array, lod: tuple[int, ...], how: Any, out: Array | None, index: Array | None,
    counts: Array | None,
) -> None:  # fmt: skip
    """Write the results of `detect`; a row of -1 where nothing was found and there is no index."""
    found = detect(boxes, scores, lod, how)
    if out is not None:
        rows = [row for row, _ in found if len(row)]
        out[...] = np.concatenate(rows) if rows else -1
    if index is not None and found:
        index[:, 0] = np.concatenate([number for _, number in found])
    if counts is not None:
        counts[...] = [len(rows) for rows, _ in found]


def _lod(c: Context) -> tuple[int, ...]:
    """The offsets of the images where boxes come class by class."""
    if c["Scores"].ndim != 2:
        return ()
    if c.has("RoisNum"):
        return (0, *np.cumsum(on_host(c["RoisNum"])).tolist())
    return tuple(c.lod("BBoxes")[-1])


def _counts(c: Context) -> tuple[int, ...]:
    """The number of boxes of each image that are left."""
    if not all_given(c, "BBoxes", "Scores"):
        return ()
    return tuple(len(rows) for rows, _ in detect(c["BBoxes"], c["Scores"], _lod(c), attributes(c)))


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
    if scores.ndim == 2 and not c.has("RoisNum"):
        require_lod(c, "BBoxes")
    rows, lod = sized(c, _counts)
    if "NmsRoisNum" in c.definition.outputs:
        lod = ()
        c.check_inputs("RoisNum")
        images = c["RoisNum"].shape[0] if c.has("RoisNum") else boxes.shape[0]
        c.set("NmsRoisNum", (images,), np.int32)
    empty = rows == 0 and "Index" not in c.definition.outputs
    c.set("Out", (1, 1) if empty else (rows, width), boxes.dtype, ((0, 1),) if empty else lod)
    c.set("Index", (rows, 1), np.int32, lod)


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
        >>> {out}[:, 1]
        array([0.9, 0.7])

    Source: Fluid's multiclass_nms_op.
    """


def _define(type: str, empty: str, more: dict[str, str], inputs: dict[str, str]) -> None:
    @op(
        type,
        inputs={
            "BBoxes: float[images, n, corners] | float[n, classes, 4] lod": "left, top, right, bottom; or corners",
            "Scores: float[images, classes, n] | float[n, classes]": "scores",
            **inputs,
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
        doc=_DOC.format(type=type, empty=empty, out='out["Out"]' if inputs else 'out["Out"].array'),
    )
    def nms(b: Binder) -> None:
        outs = b["Out"], b["Index"], b["NmsRoisNum"]
        b(write_detected, b["BBoxes"], b["Scores"], _lod(b), attributes(b), *outs)


_define("multiclass_nms", "Where none stays, Out is [[-1]].", {}, {})
_define(
    "multiclass_nms2", "Where none stays, Out has no row.",
    {"Index~": "int32 [boxes, 1]: which of all boxes each row is, a sequence for each image"}, {},
)  # fmt: skip
_define(
    "multiclass_nms3", "Where none stays, Out has no row.",
    {
        "Index~": "int32 [boxes, 1]: which of all boxes each row is",
        "NmsRoisNum?": "int32 [images]: how many rows belong to each image",
    },
    {"RoisNum?: int[images]": "where boxes are given class by class: how many belong to each image"},
)  # fmt: skip
