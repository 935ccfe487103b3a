"""A layer that is linear in each of two inputs."""

from __future__ import annotations

from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import check_variable
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["bilinear_tensor_product"]


@naming.layer
def bilinear_tensor_product(
    x: Variable,
    y: Variable,
    size: int,
    act: Any = None,
    name: str | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
) -> Variable:
    """Features that are linear in each of two inputs: ``act(x · weight[i] · y + bias[i])`` for each feature i.

    Args:
        x: [N, D].
        y: [N, E].
        size: number of features.
        act: activation.
        name: name of the layer.
        param_attr: description of the weight [size, D, E].
        bias_attr: description of the bias [1, size]; False leaves it out.

    Returns:
        [N, size].

    Raises:
        OpTypeError: an input is not a Variable.
        OpValueError: an input is no matrix, its width is not known, or they have different numbers of rows.

    Example:
        >>> x, y = fluid.layers.data("x", [5]), fluid.layers.data("y", [4])
        >>> fluid.layers.bilinear_tensor_product(x, y, size=10).shape
        (-1, 10)
    """
    helper = LayerHelper("bilinear_tensor_product", name=name, act=act, param_attr=param_attr, bias_attr=bias_attr)
    for argument, v in (("x", x), ("y", y)):
        check_variable(v, argument, "bilinear_tensor_product")
        if len(v.shape) != 2 or v.shape[1] < 0:
            raise OpValueError(
                f"{argument} of bilinear_tensor_product must be a matrix.", expected="[rows, a known width]",
                received=list(v.shape), hint="layers.flatten() makes one.",
            )  # fmt: skip
    weight = helper.create_parameter(helper.param_attr or False, [size, x.shape[1], y.shape[1]], x.dtype)
    inputs = {"X": [x], "Y": [y], "Weight": [weight]}
    if helper.bias_attr:
        inputs["Bias"] = [helper.create_parameter(helper.bias_attr, [1, size], x.dtype, is_bias=True)]
    out = helper.create_tmp_variable(x.dtype)
    helper.append_op(type="bilinear_tensor_product", inputs=inputs, outputs={"Out": [out]}, attrs={})
    return helper.append_activation(out)
