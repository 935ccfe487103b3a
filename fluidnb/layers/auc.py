"""The area under a curve of a classifier's quality."""

from __future__ import annotations

from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["auc"]


@naming.layer
@takes(input="auc.Predict")
def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:
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

    Raises:
        OpTypeError: an input is not a Variable.

    Example:
        >>> p, label = fluid.layers.data("p", [2]), fluid.layers.data("label", [1], dtype="int64")
        >>> area, last, counts = fluid.layers.auc(p, label, num_thresholds=200)
        >>> area.shape, [v.shape for v in counts]
        ((1,), [(1, 201), (1, 201), (1, 201), (1, 201)])

    Source: Fluid's layers.auc.
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
        out = helper.create_tmp_variable("float64", stop_gradient=True)
        helper.append_op(
            type="auc",
            inputs={"Predict": [input], "Label": [label], "StatPos": [state[0]], "StatNeg": [state[1]]},
            outputs={"AUC": [out], "StatPosOut": [state[0]], "StatNegOut": [state[1]]},
            attrs={"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
        )
        counts += state
        areas.append(out)
    return areas[1], areas[0], counts
