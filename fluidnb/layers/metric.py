"""Measures of a prediction: the best classes, and how often they are right."""

from __future__ import annotations

from typing import Any

from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import check_variable
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming


@naming.layer
def topk(input: Variable, k: int | Variable, name: str | None = None) -> tuple[Variable, Variable]:
    """The greatest elements along the last axis, greatest first, and where they are.

    Args:
        input: any shape.
        k: how many; a number, or an int32 variable of shape [1].
        name: name of the layer.

    Returns:
        (values [..., k], int64 indices [..., k]).

    Example:
        >>> values, indices = fluid.layers.topk(fluid.layers.data("x", [10]), k=2)
        >>> values.shape, indices.shape
        ((-1, 2), (-1, 2))
    """
    return _top_k(LayerHelper("top_k", name=name), input, k)


def _top_k(helper: LayerHelper, input: Variable, k: int | Variable) -> tuple[Variable, Variable]:
    check_variable(input, "input", helper.layer_type)
    values = helper.create_tmp_variable(input.dtype)
    indices = helper.create_tmp_variable("int64", stop_gradient=True)
    inputs: dict[str, Any] = {"X": [input]}
    attrs: dict[str, Any] = {}
    if isinstance(k, Variable):
        inputs["K"] = [k]
    else:
        attrs["k"] = k
    helper.append_op(type="top_k", inputs=inputs, outputs={"Out": [values], "Indices": [indices]}, attrs=attrs)
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
    share = helper.create_tmp_variable("float32", stop_gradient=True)
    if correct is None:
        correct = helper.create_tmp_variable("int32", stop_gradient=True)
    if total is None:
        total = helper.create_tmp_variable("int32", stop_gradient=True)
    helper.append_op(
        type="accuracy",
        inputs={"Out": [values], "Indices": [indices], "Label": [label]},
        outputs={"Accuracy": [share], "Correct": [correct], "Total": [total]},
    )
    return share
