"""yolov3_loss: how far the feature map of a YOLO network is from the objects of its images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.compute_dtype import wide_dtype
from fluidnb_kernels.cuda.grid import BLOCKS, THREADS, each
from fluidnb_kernels.cuda.row_grid import by_rows
from fluidnb_kernels.detection.yolo_box import CUDA, check_anchors, sigmoid
from fluidnb_kernels.detection.yolo_targets import Task, assign, ignored, targets
from fluidnb_kernels.emit import FLOATS, zeros
from fluidnb_kernels.rules import agree, whole_numbers
from fluidnb_kernels.tensor.strided_copy import fill

Array = Any


def entropy(x: Array, label: Any) -> Array:
    """The cross entropy of σ(x) and a label.

    Example:
        >>> entropy(np.zeros(1), 1.0).round(3)
        array([0.693])
    """
    return np.maximum(x, 0) - x * label + np.log1p(np.exp(-np.abs(x)))


def loss(
    x: Array, boxes: Array, labels: Array, scores: Array | None, task: Task,
    outs: tuple[Array | None, Array | None, Array | None],
) -> None:  # fmt: skip
    """Write the loss of each image, what each box is to be, and which anchor learns each object.

    Args:
        x: the map [n, channels, h, w].
        boxes: [n, objects, 4]: middle and size, as parts of the image.
        labels: integers [n, objects].
        scores: [n, objects], or None for 1.
        outs: the losses [n]; [n, anchors, h, w]: the score of an object, 0 for none, -1 for boxes that do not count;
            the anchors [n, objects]; each None where it is not wanted.
    """
    rates = np.ones(boxes.shape[:2], x.dtype) if scores is None else scores
    n, _, h, w = x.shape
    parts = x.reshape(n, len(task.mask), -1, h, w)
    match, valid = assign(boxes, rates, task, x.shape)
    found = targets(boxes, labels, rates, match, task, x.shape)
    objects = np.where(ignored(parts, boxes, valid, task), x.dtype.type(-1), x.dtype.type(0))
    objects[found.spot] = found.score
    image, anchor, row, column = found.spot
    own = parts[image, anchor, :, row, column]
    place = entropy(own[:, :2], found.place[:, :2]).sum(1) + np.abs(own[:, 2:4] - found.place[:, 2:]).sum(1)
    each = place * found.weight + entropy(own[:, 5:], found.labels).sum(1) * found.score
    sure = parts[:, :, 4]
    there = objects > 1e-5
    total = np.where(there, entropy(sure, 1) * objects, np.where(objects > -0.5, entropy(sure, 0), 0)).sum((1, 2, 3))
    np.add.at(total, image, each)
    for out, value in zip(outs, (total, objects, match), strict=True):
        if out is not None:
            out[...] = value


def loss_grad(
    x: Array, boxes: Array, labels: Array, scores: Array | None, objects: Array, match: Array, g: Array, task: Task,
    dx: Array,
) -> None:  # fmt: skip
    """Write the gradient of `loss`.

    Args:
        x: the map [n, channels, h, w].
        boxes: [n, objects, 4].
        labels: integers [n, objects].
        scores: [n, objects], or None for 1.
        objects: what each box is to be.
        match: the anchor of each object.
        g: the gradient of the losses [n].
    """
    rates = np.ones(boxes.shape[:2], x.dtype) if scores is None else scores
    n, _, h, w = x.shape
    parts = x.reshape(n, len(task.mask), -1, h, w)
    found = targets(boxes, labels, rates, match, task, x.shape)
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


def _infer(c: Context) -> None:
    x, boxes, mask = c["X"], c["GTBox"], c.attr("anchor_mask")
    count = len(c.attr("anchors")) // 2
    c.require(
        mask and all(0 <= k < count for k in mask), "Attr(anchor_mask) of yolov3_loss must name some of its anchors.",
        expected=f"numbers from 0 to {count - 1}", received=mask,
    )  # fmt: skip
    channels = len(mask) * (5 + c.attr("class_num"))
    c.require(
        x.ndim == 4 and x.shape[1] in (channels, -1) and agree(x.shape[2:3], x.shape[3:]),
        "Input(X) of yolov3_loss must be square maps with channels for each anchor.",
        expected=f"[batch, {channels}, size, size]", received=list(x.shape),
        hint="an anchor takes 5 channels and one for each class.",
    )  # fmt: skip
    c.require(
        boxes.ndim == 3 and boxes.shape[2] in (4, -1), "Input(GTBox) of yolov3_loss must hold boxes.",
        expected="[batch, objects, 4]: middle and size", received=list(boxes.shape),
    )  # fmt: skip
    whole_numbers(c, "GTLabel")
    for slot in ("GTLabel", "GTScore"):
        c.require(
            not c.has(slot) or agree(c[slot].shape, boxes.shape[:2]),
            f"Input({slot}) of yolov3_loss must go with Input(GTBox).",
            expected=list(boxes.shape[:2]), received=list(c[slot].shape) if c.has(slot) else None,
        )  # fmt: skip
    c.set("Loss", x.shape[:1], x.dtype)
    c.set("ObjectnessMask", (x.shape[0], len(mask), *x.shape[2:]), x.dtype)
    c.set("GTMatchMask", boxes.shape[:2], np.int32)


def _task(b: Binder) -> Task:
    classes = b.attr("class_num", 1)
    return Task(
        tuple(b.attr("anchors")), tuple(b.attr("anchor_mask")), classes, b.attr("ignore_thresh", 0.7),
        b.attr("downsample_ratio", 32), min(1 / classes, 1 / 40) if b.attr("use_label_smooth", True) else 0.0,
        b.attr("scale_x_y", 1.0),
    )  # fmt: skip


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
    infer=_infer,
    grad=default_grad("X", "GTBox", "GTLabel", "GTScore", "ObjectnessMask", "GTMatchMask", "Loss@GRAD",
                      wrt=["X", "GTBox", "GTScore"]),
    dtypes=FLOATS,
    dtype_slot="X",
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
    outs = (b["Loss"], b["ObjectnessMask"], b["GTMatchMask"])
    b(loss, b["X"], b["GTBox"], b["GTLabel"], b["GTScore"], _task(b), outs)


@grad_op("yolov3_loss_grad", dtype_slot="X")
def yolov3_loss_grad(b: Binder) -> None:
    """dX by the formulas of the losses; boxes and scores of objects, which are given, get zeros."""
    if b.wants("X@GRAD"):
        masks = (b["ObjectnessMask"], b["GTMatchMask"], b["Loss@GRAD"])
        b(loss_grad, b["X"], b["GTBox"], b["GTLabel"], b["GTScore"], *masks, _task(b), b["X@GRAD"])
    for slot in ("GTBox@GRAD", "GTScore@GRAD"):
        if b.wants(slot):
            zeros(b, b[slot])


@dataclass(frozen=True, slots=True)
class _Launches:
    """What the launches of a loss and of its gradient read."""

    b: Binder
    x: Array
    boxes: Array
    rates: Any
    anchors: Array
    task: Task

    @staticmethod
    def of(b: Binder) -> _Launches:
        x, task, wide = b["X"], _task(b), wide_dtype(b["X"].dtype)
        rates = np.uintp(0) if b["GTScore"] is None else of_dtype(b, b["GTScore"], wide)
        own = np.array(task.anchors, wide).reshape(-1, 2)[list(task.mask)]
        return _Launches(b, x, of_dtype(b, b["GTBox"], wide), rates, b.table(own), task)

    @property
    def many(self) -> int:
        """Objects of an image."""
        return int(self.boxes.shape[1])

    @property
    def input(self) -> np.float64:
        """Pixels of the network's input along an axis."""
        return np.float64(self.task.ratio * self.x.shape[2])

    @property
    def sizes(self) -> list[Any]:
        return [np.int64(v) for v in (len(self.task.mask), 5 + self.task.classes, *self.x.shape[2:])]

    def kernel(self, name: str) -> str:
        return f"{name}<{ctype(self.x.dtype)}>"

    def match(self, out: Array) -> None:
        """Which anchor learns each object."""
        anchors = np.array(self.task.anchors, self.boxes.dtype)
        place = np.full(anchors.size // 2, -1, np.int32)
        place[list(reversed(self.task.mask))] = np.arange(len(self.task.mask), dtype=np.int32)[::-1]
        operands = self.boxes, self.b.table(anchors), self.b.table(place), out, np.int64(place.size), self.input
        each(self.b, CUDA, f"matched<{ctype(self.boxes.dtype)}>", out.size, *operands)

    def objects(self, match: Array, out: Array) -> None:
        """What each place is to be."""
        operands = self.x, self.boxes, self.rates, match, self.anchors, out, *self.sizes, self.input
        numbers = np.float64(self.task.spread), np.float64(self.task.near), np.int64(self.many)
        n, count, h, w = out.shape
        by_rows(self.b, CUDA, self.kernel("objects"), n * count, h * w, *operands, *numbers)

    def by_blocks(self, name: str, blocks: int, match: Array, sure: Array, *args: Array) -> None:
        """A launch whose blocks take an image or an object each."""
        if blocks:
            labels = of_dtype(self.b, self.b["GTLabel"], np.dtype(np.int64))
            operands = self.x, self.boxes, labels, self.rates, match, self.anchors, sure, *args, *self.sizes
            numbers = self.input, np.float64(self.task.smooth), np.int64(self.many), np.int64(blocks)
            self.b(CUDA[self.kernel(name)], (min(blocks, BLOCKS),), (THREADS,), 0, *operands, *numbers)


@kernel("yolov3_loss", place="cuda", dtypes=FLOATS)
def yolov3_loss_on_cuda(b: Binder) -> None:
    """Who learns what, what each place is to be, and a block for each image's loss; NaN where an object is outside."""
    launches, loss, objects, match = _Launches.of(b), b["Loss"], b["ObjectnessMask"], b["GTMatchMask"]
    x, count = launches.x, len(launches.task.mask)
    match = b.tmp(launches.boxes.shape[:2], np.int32) if match is None else match
    objects = b.tmp((len(x), count, *x.shape[2:]), x.dtype) if objects is None else objects
    launches.match(match)
    launches.objects(match, objects)
    if loss is not None:
        launches.by_blocks("yolo_loss", len(x), match, objects, loss)


@kernel("yolov3_loss_grad", place="cuda", dtypes=FLOATS)
def yolov3_loss_grad_on_cuda(b: Binder) -> None:
    """Slopes of confidences everywhere, then of the other elements where objects are."""
    if b.wants("X@GRAD"):
        launches, objects, g, dx = _Launches.of(b), b["ObjectnessMask"], b["Loss@GRAD"], b["X@GRAD"]
        match = of_dtype(b, b["GTMatchMask"], np.dtype(np.int32))
        count, fields, h, w = launches.sizes
        rows, name = len(dx) * int(count * fields), launches.kernel("sure_grad")
        by_rows(b, CUDA, name, rows, int(h * w), launches.x, objects, g, dx, count, fields, h * w)
        launches.by_blocks("object_grad", match.size, match, objects, g, dx)
    for slot in ("GTBox@GRAD", "GTScore@GRAD"):
        if b.wants(slot):
            fill(b, b[slot])
