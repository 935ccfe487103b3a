"""Mean intersection over union, the metric of semantic segmentation."""

from __future__ import annotations

from fluidnb.layer_helper import LayerHelper
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["mean_iou"]


@naming.layer
@takes(input="mean_iou.Predictions", label="mean_iou.Labels")
def mean_iou(input: Variable, label: Variable, num_classes: int) -> tuple[Variable, Variable, Variable]:
    """The mean over classes of intersection over union: correct elements among those of a class or taken for it.

    Args:
        input: the class of each element, int32 or int64, any shape.
        label: its right class, the same shape.
        num_classes: how many classes there are.

    Returns:
        (the mean, float32 [1]; wrong elements of each class, int32 [num_classes]; correct ones, the same).

    Raises:
        OpTypeError: an argument is not a Variable, or holds no integers.
        OpValueError: the shapes differ, or there is no class.

    Example:
        >>> guess = fluid.layers.data("guess", [8, 8], dtype="int32")
        >>> truth = fluid.layers.data("truth", [8, 8], dtype="int32")
        >>> mean, wrong, correct = fluid.layers.mean_iou(guess, truth, num_classes=5)
        >>> mean.shape, wrong.shape
        ((1,), (5,))

    Source: Fluid's layers.mean_iou.
    """
    helper = LayerHelper("mean_iou")
    mean = helper.create_tmp_variable("float32", stop_gradient=True)
    wrong, correct = (helper.create_tmp_variable("int32", stop_gradient=True) for _ in range(2))
    helper.append_op(
        type="mean_iou", inputs={"Predictions": [input], "Labels": [label]},
        outputs={"OutMeanIou": [mean], "OutWrong": [wrong], "OutCorrect": [correct]},
        attrs={"num_classes": num_classes},
    )  # fmt: skip
    return mean, wrong, correct
