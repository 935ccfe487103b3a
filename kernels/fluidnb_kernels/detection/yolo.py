"""yolo_box and yolov3_loss: boxes from the maps of YOLOv3, and the loss of those maps."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb_kernels.cuda import BLOCKS, THREADS, Source, by_rows, ctype, each, of_dtype, typed, wide_dtype
from fluidnb_kernels.emit import FLOATS, store
from fluidnb_kernels.rules import attributes, check_below
from fluidnb_kernels.verbs import fill

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
    parts = x[:, first:].reshape(n, count, (x.shape[1] - first) // count, h, w)
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


def _yolo_box_infer(c: Context) -> None:
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
    infer=_yolo_box_infer,
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


def _overlaps(one: Array, other: Array) -> Array:
    """Intersection over union of boxes given by middle and size."""
    low = np.maximum(one[..., :2] - one[..., 2:] / 2, other[..., :2] - other[..., 2:] / 2)
    high = np.minimum(one[..., :2] + one[..., 2:] / 2, other[..., :2] + other[..., 2:] / 2)
    size = high - low
    shared = np.where((size < 0).any(-1), 0, size.prod(-1))
    return shared / (one[..., 2:].prod(-1) + other[..., 2:].prod(-1) - shared)


@dataclass(frozen=True, slots=True)
class Targets:
    """The objects that this map learns, one after the other."""

    spot: tuple[Array, ...]  # image, anchor of the map, row, column of each
    place: Array  # the four numbers that x, y, width, height should be
    weight: Array  # of its place
    score: Array  # of the object
    labels: Array  # [objects, classes]


def _places(how: Any) -> Array:
    """For each anchor its first number among those of this map, -1 for none."""
    place = np.full(len(how.anchors) // 2, -1, np.int32)
    for k, anchor in reversed(list(enumerate(how.anchor_mask))):
        place[anchor] = k
    return place


def assign(boxes: Array, scores: Array, how: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """For each object the anchor of the map that learns it (-1 for none), and which objects there are.

    Boxes have middle and size, as parts of the image.
    """
    valid = (boxes[..., 2:] >= 1e-6).all(-1)
    sizes = np.array(how.anchors, boxes.dtype).reshape(-1, 2) / boxes.dtype.type(how.downsample_ratio * shape[2])
    anchors, own = np.zeros((len(sizes), 4), boxes.dtype), boxes.copy()
    anchors[:, 2:], own[..., :2] = sizes, 0
    own[~valid] = 1
    best = _overlaps(own[:, :, None], anchors).argmax(-1)
    return np.where(valid, _places(how)[best], -1).astype(np.int32), valid


def targets(boxes: Array, labels: Array, scores: Array, match: Array, how: Any, shape: tuple[int, ...]) -> Targets:
    """The features that a map should have at its objects."""
    image, number = np.nonzero(match >= 0)
    box, score, dtype = boxes[image, number], scores[image, number], boxes.dtype.type
    h, w = shape[2:]
    row, column = (box[:, 1] * dtype(h)).astype(np.int64), (box[:, 0] * dtype(w)).astype(np.int64)
    anchor = match[image, number]
    sizes = np.array(how.anchors, boxes.dtype).reshape(-1, 2)[np.array(how.anchor_mask)[anchor]]
    place = np.concatenate([box[:, :2] * dtype(h), np.log(box[:, 2:] * dtype(how.downsample_ratio * h) / sizes)], 1)
    place[:, 0] -= column
    place[:, 1] -= row
    hot = np.full((len(box), how.class_num), how.smooth, boxes.dtype)
    hot[np.arange(len(box)), labels[image, number]] = 1 - how.smooth
    return Targets((image, anchor, row, column), place, (2 - box[:, 2] * box[:, 3]) * score, score, hot)


def ignored(parts: Array, boxes: Array, valid: Array, how: Any) -> Array:
    """Whether boxes of a map [n, anchors, h, w] overlap an object so much that they need not be no object."""
    n, count, _, h, w = parts.shape
    dtype = parts.dtype.type
    move, spread = dtype(-0.5 * (how.scale_x_y - 1)), dtype(how.scale_x_y)
    rows, columns = np.arange(h, dtype=parts.dtype).reshape(h, 1), np.arange(w, dtype=parts.dtype)
    sizes = np.array(how.anchors, parts.dtype).reshape(-1, 2)[list(how.anchor_mask)].reshape(1, count, 2, 1, 1)
    sizes = np.exp(parts[:, :, 2:4]) * sizes / dtype(how.downsample_ratio * h)
    own = np.stack([
        (columns + sigmoid(parts[:, :, 0]) * spread + move) / dtype(h),
        (rows + sigmoid(parts[:, :, 1]) * spread + move) / dtype(h), sizes[:, :, 0], sizes[:, :, 1],
    ], -1)  # fmt: skip
    best = np.zeros((n, count, h, w), parts.dtype)
    for k in range(boxes.shape[1]):
        other = boxes[:, k].reshape(n, 1, 1, 1, 4)
        there = valid[:, k].reshape(n, 1, 1, 1)
        best = np.where(there, np.maximum(best, _overlaps(own, np.where(there[..., None], other, 1))), best)
    return best > dtype(how.ignore_thresh)


def entropy(x: Array, label: Any) -> Array:
    """The cross entropy of σ(x) and a label."""
    return np.maximum(x, 0) - x * label + np.log1p(np.exp(-np.abs(x)))


def loss(
    x: Array, boxes: Array, labels: Array, scores: Array | None, how: Any,
    outs: tuple[Array | None, Array | None, Array | None],
) -> None:  # fmt: skip
    """Write the loss of each image, the target of each box, and the anchor of each object; ``outs`` may be None."""
    rates = np.ones(boxes.shape[:2], x.dtype) if scores is None else scores
    n, _, h, w = x.shape
    parts = x.reshape(n, len(how.anchor_mask), -1, h, w)
    match, valid = assign(boxes, rates, how, x.shape)
    found = targets(boxes, labels, rates, match, how, x.shape)
    objects = np.where(ignored(parts, boxes, valid, how), x.dtype.type(-1), x.dtype.type(0))
    objects[found.spot] = found.score
    image, anchor, row, column = found.spot
    own = parts[image, anchor, :, row, column]
    place = entropy(own[:, :2], found.place[:, :2]).sum(1) + np.abs(own[:, 2:4] - found.place[:, 2:]).sum(1)
    each = place * found.weight + entropy(own[:, 5:], found.labels).sum(1) * found.score
    sure = parts[:, :, 4]
    there = objects > 1e-5
    total = np.where(there, entropy(sure, 1) * objects, np.where(objects > -0.5, entropy(sure, 0), 0)).sum((1, 2, 3))
    np.add.at(total, image, each)
    store(outs, (total, objects, match))


def loss_grad(
    x: Array, boxes: Array, labels: Array, scores: Array | None, objects: Array, match: Array, g: Array, how: Any,
    dx: Array,
) -> None:  # fmt: skip
    """Write the gradient of `loss`."""
    rates = np.ones(boxes.shape[:2], x.dtype) if scores is None else scores
    n, _, h, w = x.shape
    count = len(how.anchor_mask)
    check_below(match[match >= 0], count, "Input(GTMatchMask) of yolov3_loss_grad must name anchors of the map.", "")
    parts = x.reshape(n, count, -1, h, w)
    found = targets(boxes, labels, rates, match, how, x.shape)
    image, anchor, row, column = found.spot
    own = parts[image, anchor, :, row, column]
    slopes = np.zeros_like(own)
    slopes[:, :2] = (sigmoid(own[:, :2]) - found.place[:, :2]) * found.weight[:, None]
    slopes[:, 2:4] = np.sign(own[:, 2:4] - found.place[:, 2:]) * found.weight[:, None]
    slopes[:, 5:] = (sigmoid(own[:, 5:]) - found.labels) * found.score[:, None]
    total = np.zeros_like(parts)
    np.add.at(np.moveaxis(total, 2, -1), found.spot, slopes)
    sure = sigmoid(parts[:, :, 4])
    total[:, :, 4] = np.where(objects > 1e-5, (sure - 1) * objects, np.where(objects > -0.5, sure, 0))
    dx[...] = (total * g.reshape(n, 1, 1, 1, 1)).reshape(dx.shape)


def _yolov3_loss_infer(c: Context) -> None:
    x, boxes, mask = c["X"], c["GTBox"], c.attr("anchor_mask")
    count = len(c.attr("anchors")) // 2
    c.check_inputs()
    c.require(
        mask and all(0 <= k < count for k in mask), "Attr(anchor_mask) of yolov3_loss must name some of its anchors.",
        expected=f"numbers from 0 to {count - 1}", received=mask,
    )  # fmt: skip
    channels = len(mask) * (5 + c.attr("class_num"))
    c.require(
        x.shape[1] in (channels, -1), "Input(X) of yolov3_loss must have channels for each anchor.",
        expected=f"[batch, {channels}, size, size]", received=list(x.shape),
        hint="an anchor takes 5 channels and one for each class.",
    )  # fmt: skip
    c.set("Loss", x.shape[:1], x.dtype)
    c.set("ObjectnessMask", (x.shape[0], len(mask), *x.shape[2:]), x.dtype)
    c.set("GTMatchMask", boxes.shape[:2], np.int32)


def _how(b: Binder) -> Any:
    """The attributes, and how much of a label goes to the other classes."""
    how = attributes(b)
    how.smooth = min(1 / how.class_num, 1 / 40) if how.use_label_smooth else 0.0
    return how


@op(
    "yolov3_loss",
    inputs={
        "X: float[n, anchors · (5 + classes), size, size]": "for each anchor x, y, width, height, confidence, classes",
        "GTBox: float[n, objects, 4]": "middle and size as parts of the image; size 0 for no object",
        "GTLabel: int32[n, objects]": "classes",
        "GTScore?: float[n, objects]": "how much each object counts; 1 where it is left out",
    },
    outputs={
        "Loss": "[n]",
        "ObjectnessMask~": "[n, anchors, size, size]: the score of an object, 0 for none, -1 for what does not count",
        "GTMatchMask~": "int32 [n, objects]: the anchor of this map that learns each object, -1 for none",
    },
    attrs={
        "anchors": Attr("ints", doc="width and height of each anchor, in pixels", check=check_anchors),
        "anchor_mask": Attr("ints", doc="the anchors of this map"),
        "class_num": Attr("int", 1, "how many classes there are", gt=0),
        "ignore_thresh": Attr("float", 0.7, "above which overlap with an object a box need not be no object"),
        "downsample_ratio": Attr("int", 32, "pixels of the network's input for one place of X", gt=0),
        "use_label_smooth": Attr("bool", True, "whether min(1 / class_num, 1 / 40) of a label goes to the others"),
        "scale_x_y": Attr("float", 1.0, "how far a middle may be from its place"),
    },
    cost="8 * X",
    infer=_yolov3_loss_infer,
    grad=default_grad("X", "GTBox", "GTLabel", "GTScore", "ObjectnessMask", "GTMatchMask", "Loss@GRAD",
                      wrt=["X", "GTBox", "GTScore"]),
    dtypes=FLOATS,
    dtype_slot="X", cuda=FLOATS,
)  # fmt: skip
def yolov3_loss(b: Binder) -> None:
    """The loss of places, confidences and classes, object by object, at the anchor that is most like it in size.

    With H for cross entropy, an object of score s, width w and height h, and its part of a box x, y, u, v::

        Loss = s (2 - w h) (H(x) + H(y) + |Δu| + |Δv|) + s Σ H(class) + s H(confidence, 1)

    and H(confidence, 0) for every other box, unless it overlaps an object by more than ``ignore_thresh``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> task = {"GTBox": np.zeros((1, 1, 4)), "GTLabel": np.zeros((1, 1), "int32")}
        >>> attrs = {"anchors": [9, 9], "anchor_mask": [0]}
        >>> run_op("yolov3_loss", {"X": np.zeros((1, 6, 1, 1)), **task}, attrs)["Loss"]
        array([0.69314718])

    Source: Redmon and Farhadi, "YOLOv3: An Incremental Improvement" (2018); Fluid's yolov3_loss_op.
    """
    if b.on_cuda:  # anchors, targets, and a block for each image's loss; NaN where an object is outside
        launches, match, objects = _Launches(b), b["GTMatchMask"], b["ObjectnessMask"]
        x, boxes, how = launches.x, launches.boxes, launches.how
        match = b.tmp(boxes.shape[:2], np.int32) if match is None else match
        objects = b.tmp((len(x), len(how.anchor_mask), *x.shape[2:]), x.dtype) if objects is None else objects
        anchors = np.array(how.anchors, boxes.dtype)
        place = b.table(_places(how))
        numbers = np.int64(place.size), launches.input
        each(b, CUDA, f"matched<{ctype(boxes.dtype)}>", match.size, boxes, b.table(anchors), place, match, *numbers)
        operands = x, boxes, launches.rates, match, launches.anchors, objects, *launches.sizes, launches.input
        limits = np.float64(how.scale_x_y), np.float64(how.ignore_thresh), launches.many
        rows, width = objects.shape[0] * objects.shape[1], objects.shape[2] * objects.shape[3]
        by_rows(b, CUDA, f"objects<{launches.ctype}>", rows, width, *operands, *limits)
        if b["Loss"] is not None:
            launches.by_blocks("yolo_loss", len(x), match, objects, b["Loss"])
        return
    outs = (b["Loss"], b["ObjectnessMask"], b["GTMatchMask"])
    b(loss, b["X"], b["GTBox"], b["GTLabel"], b["GTScore"], _how(b), outs)


@grad_op("yolov3_loss_grad", dtype_slot="X", cuda=FLOATS)
def yolov3_loss_grad(b: Binder) -> None:
    """dX by the formulas of the losses; boxes and scores of objects, which are given, get zeros."""
    dx, objects, match, g = (b[slot] for slot in ("X@GRAD", "ObjectnessMask", "GTMatchMask", "Loss@GRAD"))
    if dx is not None and not b.on_cuda:
        b(loss_grad, b["X"], b["GTBox"], b["GTLabel"], b["GTScore"], objects, match, g, _how(b), dx)
    elif dx is not None:  # slopes of confidences everywhere, then of the other elements where objects are
        launches = _Launches(b)
        match = of_dtype(b, match, np.dtype(np.int32))
        count, fields, h, w = launches.sizes
        rows, name = len(dx) * int(count * fields), f"sure_grad<{launches.ctype}>"
        by_rows(b, CUDA, name, rows, int(h * w), launches.x, objects, g, dx, count, fields, h * w)
        launches.by_blocks("object_grad", match.size, match, objects, g, dx)
    for slot in ("GTBox@GRAD", "GTScore@GRAD"):
        if b.wants(slot):
            fill(b, b[slot])


class _Launches:
    """The operands of a loss and of its gradient on a GPU."""

    def __init__(self, b: Binder) -> None:
        self.b, self.x, self.how = b, b["X"], _how(b)
        wide = wide_dtype(self.x.dtype)
        self.ctype, self.boxes = ctype(self.x.dtype), of_dtype(b, b["GTBox"], wide)
        self.rates = np.uintp(0) if b["GTScore"] is None else of_dtype(b, b["GTScore"], wide)
        self.anchors = b.table(np.array(self.how.anchors, wide).reshape(-1, 2)[self.how.anchor_mask])
        self.sizes = [np.int64(v) for v in (len(self.how.anchor_mask), 5 + self.how.class_num, *self.x.shape[2:])]
        self.input = np.float64(self.how.downsample_ratio * self.x.shape[2])  # pixels along an axis
        self.many = np.int64(self.boxes.shape[1])  # objects of an image

    def by_blocks(self, name: str, blocks: int, match: Array, sure: Array, *args: Array) -> None:
        """A launch whose blocks take an image or an object each."""
        if blocks:
            labels = of_dtype(self.b, self.b["GTLabel"], np.dtype(np.int64))
            operands = self.x, self.boxes, labels, self.rates, match, self.anchors, sure, *args, *self.sizes
            numbers = self.input, np.float64(self.how.smooth), self.many, np.int64(blocks)
            self.b(CUDA[f"{name}<{self.ctype}>"], (min(blocks, BLOCKS),), (THREADS,), 0, *operands, *numbers)
