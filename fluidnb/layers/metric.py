"""Measures of predictions: best classes, accuracy, area under a curve, intersection over union, mean precision."""

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import as_attr, as_input, several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["accuracy", "auc", "detection_map", "mean_iou", "topk"]


@naming.layer
def topk(input: Variable, k: int | Variable, name: str | None = None) -> tuple[Variable, Variable]:
    """The greatest elements along the last axis, greatest first, and where they are.

    Args:
        input: any shape.
        k: how many; a number, or an int32 variable of shape [1].

    Returns:
        (values [..., k], int64 indices [..., k]).

    Example:
        >>> values, indices = fluid.layers.topk(fluid.layers.data("x", [10]), k=2)
        >>> values.shape, indices.shape
        ((-1, 2), (-1, 2))
    """
    return _top_k(LayerHelper("top_k", name=name), input, k)


def _top_k(helper: LayerHelper, input: Variable, k: int | Variable) -> tuple[Variable, Variable]:
    inputs, outputs = {"X": input, "K": as_input(k)}, {"Out": input.dtype, "Indices": "int64"}
    values, indices = several("top_k", inputs, outputs, {"k": as_attr(k)}, constant=("Indices",), helper=helper)
    return values, indices


@naming.layer
@takes(input="float[N, classes]", correct="int[1]", total="int[1]")
def accuracy(
    input: Variable, label: Variable, k: int = 1, correct: Variable | None = None, total: Variable | None = None
) -> Variable:
    """Share of rows whose label is among the ``k`` most probable classes.

    Args:
        input: probabilities or scores [N, classes].
        label: int64 [N, 1].
        k: how many classes count as right.
        correct: an existing variable that takes the number of right rows.
        total: an existing variable that takes N.

    Returns:
        Float32 [1].

    Example:
        >>> p, label = fluid.layers.data("p", [10]), fluid.layers.data("label", [1], dtype="int64")
        >>> fluid.layers.accuracy(input=p, label=label).shape
        (1,)
    """
    helper = LayerHelper("accuracy")
    values, indices = _top_k(helper, input, k)
    inputs = {"Out": values, "Indices": indices, "Label": label}
    counts = ["int32" if existing is None else existing for existing in (correct, total)]
    outputs = dict(zip(("Accuracy", "Correct", "Total"), ["float32", *counts], strict=True))
    return several("accuracy", inputs, outputs, constant=tuple(outputs), helper=helper)[0]


@naming.layer
@takes(input="auc.Predict")
def auc(
    input: Variable, label: Variable, curve: str = "ROC", num_thresholds: int = 4095, topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:  # fmt: skip
    """The area under the curve of true against false positives, over all batches and over the last ones.

    How many rows have a score between two thresholds is counted in persistable variables; a run adds its batch.

    Args:
        input: probabilities [N, 2]; the last column is that of the positive class.
        label: int64 [N, 1]: 0 or 1.
        curve: ``"ROC"``, or ``"PR"`` for precision against recall.
        num_thresholds: number of thresholds that divide the scores.
        topk: kept for old scripts; it changes nothing.
        slide_steps: over how many of the last batches the second area goes.

    Returns:
        (float64 [1] over all batches, float64 [1] over the last batches, the four variables with the counts).

    Example:
        >>> p, label = fluid.layers.data("p", [2]), fluid.layers.data("label", [1], dtype="int64")
        >>> area, last, counts = fluid.layers.auc(p, label, num_thresholds=200)
        >>> area.shape, [v.shape for v in counts]
        ((1,), [(1, 201), (1, 201), (1, 201), (1, 201)])
    """
    helper = LayerHelper("auc")
    counts: list[Variable] = []
    areas: list[Variable] = []
    for steps in (slide_steps, 0):
        state = [
            helper.create_global_variable(
                True, dtype="int64", shape=[max(steps, 1), num_thresholds + 1], stop_gradient=True
            )
            for _ in range(2)
        ]
        for variable in state:
            helper.set_variable_initializer(variable, Constant(0.0, force_cpu=True))
        inputs = {"Predict": input, "Label": label, "StatPos": state[0], "StatNeg": state[1]}
        outputs = {"AUC": "float64", "StatPosOut": state[0], "StatNegOut": state[1]}
        attrs = {"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps}
        areas.append(several("auc", inputs, outputs, attrs, constant=("AUC",), helper=helper)[0])
        counts += state
    return areas[1], areas[0], counts


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

    Example:
        >>> guess = fluid.layers.data("guess", [8, 8], dtype="int32")
        >>> truth = fluid.layers.data("truth", [8, 8], dtype="int32")
        >>> mean, wrong, correct = fluid.layers.mean_iou(guess, truth, num_classes=5)
        >>> mean.shape, wrong.shape
        ((1,), (5,))
    """
    inputs = {"Predictions": input, "Labels": label}
    outputs = {"OutMeanIou": "float32", "OutWrong": "int32", "OutCorrect": "int32"}
    mean, wrong, correct = several("mean_iou", inputs, outputs, {"num_classes": num_classes}, constant=tuple(outputs))
    return mean, wrong, correct


@naming.layer
@takes(ap_version=("integral", "11point"))
def detection_map(
    detect_res: Variable, label: Variable, class_num: int, background_label: int = 0, overlap_threshold: float = 0.3,
    evaluate_difficult: bool = True, has_state: Variable | None = None, input_states: Sequence[Variable] | None = None,
    out_states: Sequence[Variable] | None = None, ap_version: str = "integral",
) -> Variable:  # fmt: skip
    """Mean average precision (mAP) of detections.

    Args:
        detect_res: float [detections, 6]: class, score, left, top, right, bottom; a sequence for each image.
        label: float [objects, 5]: class, left, top, right, bottom; or [objects, 6] with 1 for difficult after the
            class; a sequence for each image.
        class_num: how many classes there are, with the background.
        background_label: ignored (compatibility): a class without objects never counts.
        overlap_threshold: what the overlap (intersection over union) of a right detection with its object exceeds.
        evaluate_difficult: whether difficult objects count.
        has_state: int32 [1], whether ``input_states`` are read; None for not.
        input_states: counts so far: objects of each class int32 [class_num, 1]; scores and flags of right detections
            [n, 2], and of wrong ones, a sequence for each class.
        out_states: variables for the counts with this batch; None creates them.
        ap_version: ``"integral"`` of precision over recall, or ``"11point"`` (VOC 2007).

    Returns:
        Float [1].

    Example:
        >>> found, label = (fluid.layers.data(n, [width], lod_level=1) for n, width in (("found", 6), ("label", 5)))
        >>> mean = fluid.layers.detection_map(found, label, class_num=2)
        >>> boxes = np.float32([[1, 0.9, 0, 0, 0.5, 0.5], [1, 0.8, 0.5, 0.5, 1, 1]])
        >>> feed = {"found": fluid.create_lod_tensor(boxes, [[2]])}
        >>> feed["label"] = fluid.create_lod_tensor(boxes[1:, [0, 2, 3, 4, 5]], [[1]])
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[mean])
        [array([0.5], dtype=float32)]
    """
    for name, given in (("input_states", input_states), ("out_states", out_states or None)):
        if given is not None and len(given) != 3:
            raise OpValueError(
                f"{name} of detection_map are three variables.", received=f"{len(given)}",
                expected="the counts, those of right detections, and those of wrong ones",
            )  # fmt: skip
    inputs = {"DetectRes": detect_res, "Label": label, "HasState": has_state}
    if input_states is not None:
        inputs |= dict(zip(("PosCount", "TruePos", "FalsePos"), input_states, strict=True))
    states: Sequence[Variable | str] = out_states or ("int32", "float32", "float32")
    outputs: dict[str, Any] = {"MAP": detect_res.dtype}
    outputs |= dict(zip(("AccumPosCount", "AccumTruePos", "AccumFalsePos"), states, strict=True))
    attrs = {
        "class_num": class_num, "overlap_threshold": overlap_threshold, "evaluate_difficult": evaluate_difficult,
        "ap_type": ap_version,
    }  # fmt: skip
    return several("detection_map", inputs, outputs, attrs, constant=tuple(outputs))[0]
