"""The converter of multiclass_nms: ONNX's NonMaxSuppression, and what Paddle limits before and after it."""

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.export_math import reduce
from fluidnb.onnx.export_tensors import sliced, squeezed, unsqueezed
from fluidnb.onnx.exporter import Exporter, Op, converts

_END = 2**31 - 1


@converts("multiclass_nms3", "multiclass_nms2")
def suppress(exporter: Exporter, op: Op) -> None:
    """The best boxes of each class that do not overlap: rows of class, score and box."""
    if op.attr("nms_eta") < 1 or op.has("RoisNum"):
        raise Unsupported("nms_eta, or boxes of regions")
    shape = exporter.shape(op.var("BBoxes"))
    if len(shape) != 3 or shape[-1] != 4:
        raise Unsupported("a box for each class")
    boxes, scores = exporter.x(op, "BBoxes"), exporter.x(op, "Scores")
    kind, many = exporter.dtype(op.var("BBoxes")), shape[1]
    chosen = suppressed(exporter, op, boxes, limited(exporter, op, scores, many))
    places = [squeezed(exporter, sliced(exporter, chosen, [1], [i], [i + 1]), [1]) for i in range(3)]
    values = exporter.node("GatherND", [scores, chosen])
    if int(op.attr("keep_top_k")) >= 0:
        keep = best(exporter, places[0], values, int(op.attr("keep_top_k")))
        *places, values = (exporter.node("Compress", [each, keep], axis=0) for each in (*places, values))
    image, label, box = places
    at = exporter.node("Concat", [unsqueezed(exporter, image, [1]), unsqueezed(exporter, box, [1])], axis=1)
    columns = [
        unsqueezed(exporter, exporter.cast(label, kind), [1]), unsqueezed(exporter, values, [1]),
        exporter.node("GatherND", [boxes, at]),
    ]  # fmt: skip
    exporter.into(op, "Concat", columns, axis=1)
    if op.desc.outs.get("Index") and exporter.is_read(op.out("Index")):
        sizes = exporter.node("Shape", [boxes])
        first = exporter.node("Mul", [image, sliced(exporter, sizes, [0], [1], [2])])
        flat = unsqueezed(exporter, exporter.node("Add", [first, box]), [1])
        exporter.cast(flat, exporter.dtype(op.out("Index")), exporter.written(op.out("Index")))
    if op.desc.outs.get("NmsRoisNum") and exporter.is_read(op.out("NmsRoisNum")):
        count = squeezed(exporter, sliced(exporter, exporter.node("Shape", [boxes]), [0], [0], [1]), [0])
        zero, one = exporter.initializer(0, np.int64), exporter.initializer(1, np.int64)
        each = exporter.node("Range", [zero, count, one])
        same = exporter.node("Equal", [unsqueezed(exporter, image, [0]), unsqueezed(exporter, each, [1])])
        total = reduce(exporter, "ReduceSum", exporter.cast(same, np.int32), [1], False)
        exporter.cast(total, exporter.dtype(op.out("NmsRoisNum")), exporter.written(op.out("NmsRoisNum")))


def limited(exporter: Exporter, op: Op, scores: str, many: int) -> str:
    """The scores, those of the background and all but the first ``nms_top_k`` of a class replaced by a low one."""
    kind, classes = exporter.dtype(op.var("Scores")), exporter.shape(op.var("Scores"))[1]
    low = exporter.initializer(np.finfo(kind).min, kind)
    background, most = int(op.attr("background_label")), int(op.attr("nms_top_k"))
    if 0 <= background < classes:
        mask = (np.arange(classes) == background).reshape(1, -1, 1)
        scores = exporter.node("Where", [exporter.initializer(mask), low, scores])
    if most >= 0 and not 0 <= many <= most:
        size = sliced(exporter, exporter.node("Shape", [scores]), [0], [2], [3])
        count = exporter.node("Min", [exporter.ints(most), size])
        top, where = exporter.new("top"), exporter.new("where")
        exporter.node("TopK", [scores, count], outputs=[top, where], axis=2)
        last = reduce(exporter, "ReduceMin", top, [2], True)
        scores = exporter.node("Where", [exporter.node("Less", [scores, last]), low, scores])
    return scores


def suppressed(exporter: Exporter, op: Op, boxes: str, scores: str) -> str:
    """Image, class and box of each box that is kept."""
    if not op.attr("normalized"):  # sizes of pixels: both ends are inside
        boxes = exporter.node("Add", [boxes, exporter.initializer([0, 0, 1, 1], exporter.dtype(op.var("BBoxes")))])
    limits = [
        exporter.ints(_END), exporter.initializer([op.attr("nms_threshold")], np.float32),
        exporter.initializer([op.attr("score_threshold")], np.float32),
    ]  # fmt: skip
    return exporter.node("NonMaxSuppression", [boxes, scores, *limits])


def best(exporter: Exporter, image: str, values: str, most: int) -> str:
    """Whether each box is among the best of its image: fewer than ``most`` come before it."""
    same = exporter.node("Equal", [unsqueezed(exporter, image, [0]), unsqueezed(exporter, image, [1])])
    row, column = unsqueezed(exporter, values, [0]), unsqueezed(exporter, values, [1])
    count = squeezed(exporter, exporter.node("Shape", [values]), [0])
    each = exporter.node("Range", [exporter.initializer(0, np.int64), count, exporter.initializer(1, np.int64)])
    earlier = exporter.node("Less", [unsqueezed(exporter, each, [0]), unsqueezed(exporter, each, [1])])
    ties = exporter.node("And", [exporter.node("Equal", [row, column]), earlier])
    before = exporter.node("And", [same, exporter.node("Or", [exporter.node("Greater", [row, column]), ties])])
    rank = reduce(exporter, "ReduceSum", exporter.cast(before, np.int64), [1], False)
    return exporter.node("Less", [rank, exporter.initializer(most, np.int64)])
