"""yolo_box: boxes and scores out of the feature map of a YOLO network."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op, product
from fluidnb_kernels.cuda import BLOCKS, Source, by_rows, ctype, of_dtype, typed, wide_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import attributes

#: Sides of a tile of scores, as ``yolo.cu`` numbers them.
_TILE, _STRIPE = 32, 8


CUDA = Source(__file__, "yolo.cu", typed(
    ("matched", ("float32", "float64")), ("yolo_boxes yolo_scores objects yolo_loss sure_grad object_grad", FLOATS),
))  # fmt: skip


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def read(x: Array, images: Array, how: Any, boxes: Array | None, scores: Array | None) -> None:
    """Write the boxes and scores of a map; zeros where the confidence is too small.

    ``images`` has heights and widths; ``boxes`` or ``scores`` may be None.
    """
    n, _, h, w = x.shape
    count, dtype = len(how.anchors) // 2, x.dtype.type
    first = count if how.iou_aware else 0
    parts = x[:, first:].reshape(n, count, -1, h, w)
    sure = sigmoid(parts[:, :, 4])
    if how.iou_aware:
        sure = sure ** dtype(1 - how.iou_aware_factor) * sigmoid(x[:, :count]) ** dtype(how.iou_aware_factor)
    sizes = images.astype(x.dtype).reshape(n, 2, 1, 1, 1)
    anchors = np.array(how.anchors, x.dtype).reshape(1, count, 2, 1, 1)
    move = dtype(-0.5 * (how.scale_x_y - 1))
    rows, columns = np.arange(h, dtype=x.dtype).reshape(h, 1), np.arange(w, dtype=x.dtype)
    spread = dtype(how.scale_x_y)
    middle_x = (columns + sigmoid(parts[:, :, 0]) * spread + move) * sizes[:, 1] / dtype(w)
    middle_y = (rows + sigmoid(parts[:, :, 1]) * spread + move) * sizes[:, 0] / dtype(h)
    half_w = np.exp(parts[:, :, 2]) * anchors[:, :, 0] * sizes[:, 1] / dtype(how.downsample_ratio * w) / 2
    half_h = np.exp(parts[:, :, 3]) * anchors[:, :, 1] * sizes[:, 0] / dtype(how.downsample_ratio * h) / 2
    found = np.stack([middle_x - half_w, middle_y - half_h, middle_x + half_w, middle_y + half_h], -1)
    if how.clip_bbox:
        last = (sizes[:, ::-1, 0, 0, 0] - 1).reshape(n, 1, 1, 1, 2)
        found = np.concatenate([np.maximum(found[..., :2], 0), np.minimum(found[..., 2:], last)], -1)
    kept = (sure >= dtype(how.conf_thresh))[..., None]
    if boxes is not None:
        boxes[...] = np.where(kept, found, 0).reshape(boxes.shape)
    if scores is not None:
        rate = np.moveaxis(sigmoid(parts[:, :, 5:]), 2, -1) * sure[..., None]
        scores[...] = np.where(kept, rate, 0).reshape(scores.shape)


def check_anchors(anchors: list[int]) -> str | None:
    """A sentence if numbers do not make anchors."""
    if anchors and len(anchors) % 2 == 0 and min(anchors) > 0:
        return None
    return "anchors must be a positive width and height for each anchor."


def _infer(c: Context) -> None:
    x, anchors = c["X"], len(c.attr("anchors")) // 2
    aware = c.attr("iou_aware")
    channels = anchors * (5 + c.attr("class_num") + aware)
    c.check_inputs()
    c.require(
        x.shape[1] in (channels, -1), "Input(X) of yolo_box must have channels for each anchor.",
        expected=f"[batch, {channels}, height, width]", received=list(x.shape),
        hint="an anchor takes 5 channels and one for each class, and with iou_aware one more.",
    )  # fmt: skip
    places = product((anchors, *x.shape[2:]))
    c.set("Boxes", (x.shape[0], places, 4), x.dtype)
    c.set("Scores", (x.shape[0], places, c.attr("class_num")), x.dtype)


@op(
    "yolo_box",
    inputs={
        "X: float[n, anchors · (5 + classes), h, w]": "for each anchor x, y, width, height, confidence, classes",
        "ImgSize: int32[n, 2]": "heights and widths of the images",
    },
    outputs={"Boxes": "[n, anchors · h · w, 4]: left, top, right, bottom", "Scores": "[n, anchors · h · w, classes]"},
    attrs={
        "anchors": Attr("ints", doc="width and height of each anchor, in pixels", check=check_anchors),
        "class_num": Attr("int", 1, "how many classes there are", gt=0),
        "conf_thresh": Attr("float", 0.01, "the least confidence of a box; others are zeros"),
        "downsample_ratio": Attr("int", 32, "pixels of the network's input for one place of X", gt=0),
        "clip_bbox": Attr("bool", True, "whether boxes end at the edges of the image"),
        "scale_x_y": Attr("float", 1.0, "how far a middle may be from its place"),
        "iou_aware": Attr("bool", False, "whether X starts with a predicted overlap for each anchor"),
        "iou_aware_factor": Attr("float", 0.5, "the power of that overlap in the confidence"),
    },
    cost="X",
    infer=_infer,
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def yolo_box(b: Binder) -> None:
    """A box for each anchor and place: middle = (place + σ(x)) / size, size = anchor · exp(w); scores = σ(c) · σ(p).

    Example:
        >>> from fluidnb.testing import run_op
        >>> maps = {"X": np.zeros((1, 6, 1, 1)), "ImgSize": np.array([[32, 32]])}
        >>> run_op("yolo_box", maps, {"anchors": [16, 16]})
        {'Boxes': array([[[ 8.,  8., 24., 24.]]]), 'Scores': array([[[0.25]]])}

    Source: Redmon and Farhadi, "YOLOv3: An Incremental Improvement" (2018); Fluid's yolo_box_op.
    """
    if not b.on_cuda:
        return b(read, b["X"], b["ImgSize"], attributes(b), b["Boxes"], b["Scores"])
    x, boxes, scores, how = b["X"], b["Boxes"], b["Scores"], attributes(b)
    n, _, h, w = x.shape
    wide, count, classes = wide_dtype(x.dtype), len(how.anchors) // 2, b.attr("class_num")
    sizes = [np.int64(v) for v in (count, 5 + classes, h, w)]
    least, aware = np.float64(how.conf_thresh), (np.int32(how.iou_aware), np.float64(how.iou_aware_factor))
    if boxes is not None and boxes.size:
        anchors, more = b.table(np.array(how.anchors, wide)), (np.int32(how.clip_bbox), np.float64(how.scale_x_y))
        operands = x, of_dtype(b, b["ImgSize"], wide), anchors, boxes, *sizes, np.int64(how.downsample_ratio), least
        by_rows(b, CUDA, f"yolo_boxes<{ctype(x.dtype)}>", n * count, 4 * h * w, *operands, *more, *aware)
    if scores is not None and scores.size:
        places, groups = -(-h * w // _TILE), -(-classes // _TILE)
        tiles = n * count * places * groups
        counts = [np.int64(v) for v in (places, groups, tiles)]
        name, grid, block = CUDA[f"yolo_scores<{ctype(x.dtype)}>"], (min(tiles, BLOCKS),), (_TILE, _STRIPE)
        b(name, grid, block, 0, x, scores, *sizes, least, *aware, *counts)
    return None
