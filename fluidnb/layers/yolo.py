"""YOLOv3: loss and decoding of a feature map."""

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpTypeError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.boxes import numbers
from fluidnb.layers.one_op import several
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["yolo_box", "yolov3_loss"]


def _whole(value: Any, argument: str, layer: str) -> list[int]:
    """A list of whole numbers."""
    if any(n != int(n) for n in numbers(value, argument, layer)):
        raise OpTypeError(
            f"{argument} of {layer} must be whole numbers.", expected="a list of ints", received=repr(value)
        )
    return [int(n) for n in value]


@naming.layer
def yolov3_loss(
    x: Variable, gt_box: Variable, gt_label: Variable, anchors: Sequence[int], anchor_mask: Sequence[int],
    class_num: int, ignore_thresh: float, downsample_ratio: int, gt_score: Variable | None = None,
    use_label_smooth: bool = True, name: str | None = None,
) -> Variable:  # fmt: skip
    """Loss of one feature map of YOLOv3: of places, sizes, objectness and classes.

    Args:
        x: float [batch, masks · (5 + class_num), h, w]: for each anchor x, y, w, h, objectness and class scores.
        gt_box: float [batch, objects, 4]: center x, y, width, height as parts of the image; all 0 for none.
        gt_label: int32 [batch, objects], their classes.
        anchors: widths and heights of all anchors in pixels, in turn.
        anchor_mask: the anchors of this map.
        ignore_thresh: a box whose overlap with an object exceeds this has no objectness loss unless it is responsible.
        downsample_ratio: pixels of the image to one of the map.
        gt_score: float [batch, objects], weights of the objects (mixup); None for 1 each.
        use_label_smooth: whether class labels are smoothed by ``min(1 / class_num, 1 / 40)``.
        name: name of the result.

    Returns:
        Float [batch].

    Example:
        >>> x, box = fluid.layers.data("x", [21, 4, 4]), fluid.layers.data("box", [6, 4])
        >>> label = fluid.layers.data("label", [6], dtype="int32")
        >>> sizes = [10, 13, 16, 30, 33, 23, 30, 61]
        >>> fluid.layers.yolov3_loss(x, box, label, sizes, [0, 1, 2], 2, 0.7, 32).shape
        (-1,)

    Source: Redmon and Farhadi, "YOLOv3" (2018).
    """
    helper = LayerHelper("yolov3_loss", name=name)
    inputs = {"X": x, "GTBox": gt_box, "GTLabel": gt_label, "GTScore": gt_score}
    loss = x.dtype if name is None else helper.create_variable(name=name, dtype=x.dtype)
    attrs = {
        "anchors": _whole(anchors, "anchors", "yolov3_loss"), "class_num": class_num, "ignore_thresh": ignore_thresh,
        "anchor_mask": _whole(anchor_mask, "anchor_mask", "yolov3_loss"), "downsample_ratio": downsample_ratio,
        "use_label_smooth": use_label_smooth,
    }  # fmt: skip
    masks = ("ObjectnessMask", "GTMatchMask")
    outputs = {"Loss": loss, **dict.fromkeys(masks, "int32")}
    return several("yolov3_loss", inputs, outputs, attrs, constant=masks, helper=helper)[0]


@naming.layer
def yolo_box(
    x: Variable, img_size: Variable, anchors: Sequence[int], class_num: int, conf_thresh: float, downsample_ratio: int,
    name: str | None = None,
) -> tuple[Variable, Variable]:  # fmt: skip
    """Decodes one feature map of YOLOv3 to boxes and scores.

    Args:
        x: float [batch, anchors · (5 + class_num), h, w].
        img_size: int32 [batch, 2], height and width of each image.
        anchors: widths and heights of the map's anchors in pixels, in turn.
        conf_thresh: a box whose objectness is below this is all 0, as are its scores.
        downsample_ratio: pixels of the network's input to one of the map.

    Returns:
        Boxes float [batch, anchors · h · w, 4]: left, top, right, bottom in pixels of the image; scores float
        [batch, anchors · h · w, class_num].

    Example:
        >>> x, size = fluid.layers.data("x", [14, 4, 4]), fluid.layers.data("size", [2], dtype="int32")
        >>> boxes, scores = fluid.layers.yolo_box(x, size, [10, 13, 16, 30], 2, 0.01, 32)
        >>> boxes.shape, scores.shape
        ((-1, 32, 4), (-1, 32, 2))

    Source: Redmon and Farhadi, "YOLOv3" (2018).
    """
    attrs = {
        "anchors": _whole(anchors, "anchors", "yolo_box"), "class_num": class_num, "conf_thresh": conf_thresh,
        "downsample_ratio": downsample_ratio,
    }  # fmt: skip
    outputs = {"Boxes": x.dtype, "Scores": x.dtype}
    boxes, scores = several("yolo_box", {"X": x, "ImgSize": img_size}, outputs, attrs, name=name)
    return boxes, scores
