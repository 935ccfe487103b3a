"""generate_proposals: the regions that a network proposes, the best of those that overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op, product
from fluidnb.values.copies import on_host
from fluidnb_kernels.detection.nms import falling
from fluidnb_kernels.detection.region_targets import write_rows
from fluidnb_kernels.rules import attributes, fits
from fluidnb_kernels.sequences import all_given, sized

#: The largest logarithm by which a box may grow.
GROWTH = float(np.log(1000.0 / 16.0))


def decoded(anchors: Array, variances: Array, codes: Array) -> Array:
    """The boxes [n, 4] that codes of anchors mean."""
    one, half = anchors.dtype.type(1), anchors.dtype.type(0.5)
    size = anchors[:, 2:] - anchors[:, :2] + one
    scaled = variances * codes
    middle = scaled[:, :2] * size + anchors[:, :2] + half * size
    reach = np.exp(np.minimum(scaled[:, 2:], anchors.dtype.type(GROWTH))) * size * half
    return np.concatenate([middle - reach, middle + reach - one], 1)


def separate(boxes: Array, scores: Array, how: Any) -> Array:
    """The regions left by non-maximum suppression, the highest score first."""
    one = boxes.dtype.type(1)
    area = (boxes[:, 2:] - boxes[:, :2] + one).prod(1)
    most, limit = np.zeros(len(boxes), boxes.dtype), boxes.dtype.type(how.nms_thresh)
    kept: list[int] = []
    # of equal scores the last comes first, as in Fluid
    order = (len(scores) - 1 - falling(scores[::-1])).tolist()
    for spot in order:
        if most[spot] > limit:
            continue
        kept.append(spot)
        if len(kept) == how.post_nms_topN:
            break
        own = boxes[spot]
        between = np.minimum(boxes[:, 2:], own[2:]) - np.maximum(boxes[:, :2], own[:2])
        shared = np.where((between >= 0).all(1), (between + one).prod(1), 0)
        np.maximum(most, shared / (area + area[spot] - shared), out=most)
        if how.eta < 1 and limit > 0.5:
            limit *= boxes.dtype.type(how.eta)
    return np.array(kept, np.int64)


def of_image(
    scores: Array, codes: Array, info: Array, anchors: Array, variances: Array, how: Any
) -> tuple[Array, Array]:
    """The regions of one image, and their scores."""
    order = falling(scores)
    if 0 < how.pre_nms_topN < len(order):
        order = order[: how.pre_nms_topN]
    height, width, scale = info
    edge = np.array([width, height, width, height], anchors.dtype) - anchors.dtype.type(1)
    boxes = np.maximum(np.minimum(decoded(anchors[order], variances[order], codes[order]), edge), 0)
    size, one = boxes[:, 2:] - boxes[:, :2], boxes.dtype.type(1)
    middle = boxes[:, :2] + (size + one) / boxes.dtype.type(2)
    wide = size / scale + one >= boxes.dtype.type(max(how.min_size, 1.0))
    kept = np.flatnonzero(wide.all(1) & (middle <= info[1::-1]).all(1))
    boxes, scores = boxes[kept], scores[order[kept]]
    if how.nms_thresh > 0:
        kept = separate(boxes, scores, how)
        boxes, scores = boxes[kept], scores[kept]
    return boxes, scores


def proposed(operands: tuple[Array, ...], how: Any) -> list[tuple[Array, Array]]:
    """The regions of every image, and their scores."""
    scores, codes, info, anchors, variances = operands
    flat = [np.ascontiguousarray(v).reshape(-1, 4) for v in (anchors, variances)]
    rows = scores.transpose(0, 2, 3, 1).reshape(len(scores), -1)
    moved = codes.transpose(0, 2, 3, 1).reshape(len(codes), -1, 4)
    return [of_image(rows[i], moved[i], info[i], flat[0], flat[1], how) for i in range(len(scores))]


_SLOTS = ("Scores", "BboxDeltas", "ImInfo", "Anchors", "Variances")


def _counts(b: Context) -> tuple[int, ...]:
    """Number of selected regions of each image."""
    if not all_given(b, *_SLOTS):
        return ()
    return tuple(len(rows) for rows, _ in proposed(tuple(on_host(b[s]) for s in _SLOTS), attributes(b)))


def _infer(c: Context) -> None:
    scores = c["Scores"].shape
    c.check_inputs()
    wanted = (-1, product((4, scores[1])), -1, -1)
    fits(c, "BboxDeltas", wanted, "Input(BboxDeltas) of generate_proposals does not go with its Scores.")
    count, lod = sized(c, _counts)
    c.set("RpnRois", (count, 4), c["Anchors"].dtype, lod)
    c.set("RpnRoiProbs", (count, 1), c["Scores"].dtype, lod)


def _write(operands: tuple[Array, ...], how: Any, outs: tuple[Array | None, ...]) -> None:
    write_rows(outs, proposed(operands, how))


@op(
    "generate_proposals",
    inputs={
        "Scores: float[images, anchors, height, width]": "how sure the network is of an object",
        "BboxDeltas: float[images, 4 · anchors, height, width]": "boxes as deltas of the anchors",
        "ImInfo: float[images, 3]": "height, width, and how much larger the network sees the image",
        "Anchors: float[height, width, anchors, 4]": "left, top, right, bottom",
        "Variances: float[height, width, anchors, 4]": "factors of the deltas",
    },
    outputs={
        "RpnRois": "[regions, 4]; a sequence for each image",
        "RpnRoiProbs": "[regions, 1]: their scores; a sequence for each image",
    },
    attrs={
        "pre_nms_topN": Attr("int", doc="how many regions of an image are kept before NMS; 0 or less for all"),
        "post_nms_topN": Attr("int", doc="how many of them stay; 0 or less for all"),
        "nms_thresh": Attr("float", doc="above which overlap with a better region a region goes; 0 or less for none"),
        "min_size": Attr("float", doc="the least width and height of a region, in the image as it was; at least 1"),
        "eta": Attr("float", doc="factor of nms_thresh after each region that stays, while it is above 1/2"),
    },
    infer=_infer,
    guard=_counts,
    data_shape=True,
    host_only="searches step by step: each step depends on the one before",
    dtypes=("float32", "float64"),
    dtype_slot="Anchors",
)
def generate_proposals(b: Binder) -> None:
    """RpnRois = the boxes that the highest Scores and their BboxDeltas mean, without those that overlap a better one.

    Boxes are held within their image. Where none stays, the image has no region.

    Example:
        >>> from fluidnb.testing import run_op
        >>> one = {"Scores": np.full((1, 1, 1, 1), 0.5), "BboxDeltas": np.zeros((1, 4, 1, 1))}
        >>> one |= {"ImInfo": [[9.0, 9.0, 1.0]], "Variances": np.ones((1, 1, 1, 4))}
        >>> one["Anchors"] = np.array([-2.0, 0.0, 5.0, 5.0]).reshape(1, 1, 1, 4)
        >>> attrs = {"pre_nms_topN": 9, "post_nms_topN": 9, "nms_thresh": 0.5, "min_size": 1.0, "eta": 1.0}
        >>> run_op("generate_proposals", one, attrs)["RpnRois"].array
        array([[0., 0., 5., 5.]])

    Source: Ren et al., "Faster R-CNN" (2015); Fluid's generate_proposals_op.
    """
    b(_write, tuple(b[s] for s in _SLOTS), attributes(b), (b["RpnRois"], b["RpnRoiProbs"]))
