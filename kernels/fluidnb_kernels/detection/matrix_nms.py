"""matrix_nms: scores of boxes that overlap better ones of their class fall, all at once."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.detection.nms import falling, of_boxes
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import attributes
from fluidnb_kernels.sequences import all_given, sized

#: Rows of the matrix of overlaps that are computed at once, so that its memory grows with the boxes, not their square.
_ROWS = 128


def _above(boxes: Array, first: int, normalized: bool) -> Array:
    """Overlaps of boxes from a row on with all before their block's end; 0 with boxes that are not better."""
    stop = min(first + _ROWS, len(boxes))
    shared = of_boxes(boxes[first:stop], boxes[:stop], normalized)
    shared[np.arange(stop) >= np.arange(first, stop)[:, None]] = 0
    return shared


def decayed(boxes: Array, scores: Array, how: Any) -> tuple[Array, Array]:
    """The boxes of one class whose decayed scores are high enough, the highest score first, and these scores."""
    spots = np.flatnonzero(scores > scores.dtype.type(how.score_threshold))
    spots = spots[falling(scores[spots])]
    if how.nms_top_k > -1:
        spots = spots[: how.nms_top_k]
    chosen, kept = boxes[spots], scores[spots]
    most, factors = np.zeros(len(spots), boxes.dtype), np.ones(len(spots), boxes.dtype)
    for first in range(0, len(spots), _ROWS):
        shared = _above(chosen, first, how.normalized)
        block = slice(first, first + len(shared))
        most[block] = shared.max(1, initial=0)
        before = np.arange(shared.shape[1]) < np.arange(first, first + len(shared))[:, None]
        of_better = most[: shared.shape[1]]
        with np.errstate(divide="ignore", invalid="ignore"):  # two equal boxes above: 0 / 0, as in Paddle
            if how.use_gaussian:
                decay = np.exp((of_better**2 - shared**2) * boxes.dtype.type(how.gaussian_sigma))
            else:
                decay = (1 - shared) / (1 - of_better)
        decay = np.where(before & ~np.isnan(decay), decay, 1)
        factors[block] = np.minimum(decay.min(1, initial=1), 1)
    kept = kept * factors
    stay = kept > kept.dtype.type(how.post_threshold)
    return spots[stay], kept[stay]


def detect(boxes: Array, scores: Array, how: Any) -> list[tuple[Array, Array]]:
    """For each image the rows of class, score and box, and their numbers among all boxes."""
    found = []
    for i, (own, rows) in enumerate(zip(boxes, scores, strict=True)):
        parts = [(k, *decayed(own, row, how)) for k, row in enumerate(rows) if k != how.background_label]
        label = np.concatenate([np.full(len(spot), k) for k, spot, _ in parts] or [np.zeros(0, np.int64)])
        spot = np.concatenate([spot for _, spot, _ in parts] or [np.zeros(0, np.int64)]).astype(np.int64)
        score = np.concatenate([kept for _, _, kept in parts] or [np.zeros(0, scores.dtype)])
        best = falling(score)
        if how.keep_top_k > -1:
            best = best[: how.keep_top_k]
        label, spot, score = label[best], spot[best], score[best]
        table = np.concatenate([label[:, None].astype(own.dtype), score[:, None], own[spot]], 1)
        found.append((table, i * boxes.shape[1] + spot))
    return found


def write_detected(
    boxes: Array, scores: Array, how: Any, out: Array | None, index: Array | None, counts: Array | None
) -> None:  # fmt: skip
    """Write the results of `detect`."""
    found = detect(boxes, scores, how)
    if out is not None and len(out):
        out[...] = np.concatenate([rows for rows, _ in found])
    if index is not None and len(index):
        index[:, 0] = np.concatenate([number for _, number in found])
    if counts is not None:
        counts[...] = [len(rows) for rows, _ in found]


def _counts(c: Context) -> tuple[int, ...]:
    """The number of boxes of each image that are left."""
    if not all_given(c, "BBoxes", "Scores"):
        return ()
    return tuple(len(rows) for rows, _ in detect(c["BBoxes"], c["Scores"], attributes(c)))


def _infer(c: Context) -> None:
    boxes, scores = c["BBoxes"], c["Scores"]
    c.check_inputs("BBoxes", "Scores")
    c.require(
        boxes.shape[2] in (4, -1), "Input(BBoxes) of matrix_nms must hold boxes.", expected="[images, boxes, 4]",
        received=list(boxes.shape),
    )  # fmt: skip
    wanted = [boxes.shape[0], "classes", boxes.shape[1]]
    c.require(
        all(n == m or -1 in (n, m) for n, m in zip(boxes.shape[:2], (scores.shape[0], scores.shape[2]), strict=True)),
        "Input(Scores) of matrix_nms must have a score for each box and class.", expected=wanted,
        received=list(scores.shape),
    )  # fmt: skip
    rows, _ = sized(c, _counts)
    c.set("Out", (rows, 6), boxes.dtype)
    c.set("Index", (rows, 1), np.int32)
    c.set("RoisNum", (boxes.shape[0],), np.int32)


@op(
    "matrix_nms",
    inputs={
        "BBoxes: float[images, n, 4]": "left, top, right, bottom",
        "Scores: float[images, classes, n]": "scores",
    },
    outputs={
        "Out": "[boxes, 6]", "Index": "int32 [boxes, 1]: which of all boxes each row is",
        "RoisNum?": "int32 [images]: how many rows belong to each image",
    },
    attrs={
        "background_label": Attr("int", 0, "a class that does not count; -1 for none"),
        "score_threshold": Attr("float", doc="what a score must exceed before"),
        "post_threshold": Attr("float", 0.0, "what a score must exceed after"),
        "nms_top_k": Attr("int", doc="how many boxes of a class are kept before; -1 for all"),
        "keep_top_k": Attr("int", doc="how many boxes of an image stay in the end; -1 for all"),
        "normalized": Attr("bool", True, "whether boxes end at right and bottom, or behind the pixel there"),
        "use_gaussian": Attr("bool", False, "whether scores fall by a Gaussian function, or linearly"),
        "gaussian_sigma": Attr("float", 2.0, "factor in the exponent of the Gaussian function"),
    },
    infer=_infer,
    guard=_counts,
    data_shape=True,
    host_only="sorts and selects: the number of results depends on the values",
    dtypes=FLOATS,
)  # fmt: skip
def matrix_nms(b: Binder) -> None:
    """Rows of class, score, left, top, right, bottom: boxes whose scores fell by their overlap with better ones.

    Class by class, boxes whose score exceeds ``score_threshold`` are sorted by it, ``nms_top_k`` of them are kept. Then
    ``score[i] = score[i] · min((1 - o[i, j]) / (1 - m[j]))`` over the better boxes j: o is the overlap (intersection
    over union), m[j] the largest overlap of j with a box that is better than j. With ``use_gaussian`` the factor is
    ``exp((m[j]² - o[i, j]²) · gaussian_sigma)``. What then exceeds ``post_threshold`` stays, of all classes the
    ``keep_top_k`` best, the highest score first.

    Example:
        >>> from fluidnb.testing import run_op
        >>> boxes = [[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.5], [2.0, 2.0, 3.0, 3.0]]]
        >>> attrs = {"background_label": -1, "score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1}
        >>> run_op("matrix_nms", {"BBoxes": boxes, "Scores": [[[0.8, 0.6, 0.7]]]}, attrs)["Out"][:, 1]
        array([0.8, 0.7, 0.3])

    Source: Paddle's matrix_nms_op; Wang and others, SOLOv2: Dynamic and Fast Instance Segmentation, 2020.
    """
    b(write_detected, b["BBoxes"], b["Scores"], attributes(b), b["Out"], b["Index"], b["RoisNum"])
