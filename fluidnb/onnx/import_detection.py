"""The converter of NonMaxSuppression, by multiclass_nms3: image, class and box of each box that is kept."""

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.importer import Importer, Node, converts

_END = 2**31 - 1


@converts("NonMaxSuppression")
def suppress(importer: Importer, node: Node) -> None:
    """The boxes of each image and class that do not overlap a better one."""
    most = int(importer.required(node, 2, "number of boxes").reshape(-1)[0]) if node.has(2) else 0
    if most <= 0:
        raise Unsupported("no boxes")
    limits = {
        name: float(importer.required(node, i, name).reshape(-1)[0]) if node.has(i) else default
        for i, name, default in ((3, "iou_threshold", 0.0), (4, "score_threshold", float(np.finfo("float32").min)))
    }
    boxes, scores = importer.x(node), importer.x(node, 1)
    many = importer.shape(boxes)[1]
    rows, index, count = (importer.new(name) for name in ("kept", "index", "count"))
    importer.append(
        "multiclass_nms3", {"BBoxes": corners(importer, node, boxes), "Scores": scores},
        {"Out": rows, "Index": index, "NmsRoisNum": count}, background_label=-1, nms_top_k=-1, keep_top_k=-1,
        score_threshold=limits["score_threshold"], nms_threshold=limits["iou_threshold"], nms_eta=1.0, normalized=True,
    )  # fmt: skip
    label = importer.cast(column(importer, rows, 0), "int64")
    flat = importer.cast(index, "int64")
    size = axis_size(importer, boxes)
    image = importer.value("elementwise_floordiv", {"X": flat, "Y": size})
    box = importer.value("elementwise_mod", {"X": flat, "Y": size})
    chosen = [image, label, box]
    if not 0 <= many <= most:
        chosen = limited(importer, chosen, most, axis_size(importer, scores))
    importer.into(node, "concat", {"X": chosen}, axis=1)


def column(importer: Importer, matrix: str, at: int) -> str:
    """A column of a matrix, as a matrix."""
    return importer.value("slice", {"Input": matrix}, "Out", axes=[1], starts=[at], ends=[at + 1])


def axis_size(importer: Importer, tensor: str) -> str:
    """The size of the second axis: the number of boxes of an image, or of classes."""
    size = importer.shape(tensor)[1]
    if size >= 0:
        return importer.made(np.array(size, "int64"))
    sizes = importer.value("shape", {"Input": tensor})
    return importer.cast(importer.value("slice", {"Input": sizes}, "Out", axes=[0], starts=[1], ends=[2]), "int64")


def corners(importer: Importer, node: Node, boxes: str) -> str:
    """Boxes by their smaller and larger ends; ONNX gives any two corners, or a centre and sizes."""
    first, second = (
        importer.value("slice", {"Input": boxes}, "Out", axes=[2], starts=[a], ends=[b]) for a, b in ((0, 2), (2, _END))
    )
    if node.attrs.get("center_point_box", 0):
        half = importer.value("scale", {"X": second}, scale=0.5)
        ends = [importer.value(f"elementwise_{how}", {"X": first, "Y": half}) for how in ("sub", "add")]
    else:
        ends = [importer.value(f"elementwise_{how}", {"X": first, "Y": second}) for how in ("min", "max")]
    return importer.value("concat", {"X": ends}, axis=2)


def limited(importer: Importer, chosen: list[str], most: int, classes: str) -> list[str]:
    """The first boxes of each image and class; they are in order of both, and of their scores."""
    before = importer.value("elementwise_mul", {"X": chosen[0], "Y": classes})
    group = importer.value("elementwise_add", {"X": before, "Y": chosen[1]})
    same = importer.value("equal", {"X": group, "Y": importer.transpose(group, [1, 0])})
    earlier = importer.value("tril_triu", {"X": importer.cast(same, "int32")}, diagonal=-1, lower=True)
    rank = importer.value("reduce_sum", {"X": earlier}, dim=[1], keep_dim=False)
    kept = importer.value("less_than", {"X": rank, "Y": importer.made(np.array(most, "int32"))})
    where = importer.value("squeeze2", {"X": importer.value("where_index", {"Condition": kept})}, axes=[1])
    return [importer.value("gather", {"X": each, "Index": where}, axis=0) for each in chosen]
