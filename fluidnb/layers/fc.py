"""The fully connected layer, and one that is linear in each of two inputs."""

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import Operand, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import several
from fluidnb.op import product, takes
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values import dtypes

__all__ = ["bilinear_tensor_product", "fc"]


def operands(variables: Sequence[Variable]) -> list[Operand]:
    """Variables as operands of a message."""
    return [("input", v.name, dtypes.dtype_name(v.dtype), v.shape) for v in variables]


@naming.layer
@takes(input="mul.X")
def fc(
    input: Variable | Sequence[Variable], size: int, num_flatten_dims: int = 1,
    param_attr: ParamAttrLike | Sequence[ParamAttrLike] = None, bias_attr: ParamAttrLike = None, act: Any = None,
    is_test: bool = False, name: str | None = None,
) -> Variable:  # fmt: skip
    """Fully connected layer: ``act(sum_i(input_i · weight_i) + bias)``.

    Args:
        input: a variable [d0, …, dn], or several with the same leading sizes; each has a separate weight.
        size: number of output features.
        num_flatten_dims: how many leading axes stay rows; the others are flattened into the weight's first axis.
        param_attr: description of the weight [product of flattened sizes, size], or a list with one for each input.
        bias_attr: description of the bias [size]; False leaves it out.
        act: activation, for example ``"relu"``.
        is_test: kept for old scripts; the layer is the same in training and test.
        name: name of the layer; parameters are called ``name.w_0`` and ``name.b_0``.

    Returns:
        The output [d0, …, size], with the LoD of the input; ``out.param`` is the first weight.

    Raises:
        OpValueError: an unknown size would be flattened, or ``num_flatten_dims`` or ``size`` is out of range.

    Example:
        >>> x = fluid.layers.data("x", [13])
        >>> y = fluid.layers.fc(x, size=4, act="relu")
        >>> y.shape, y.param.name, y.param.shape
        ((-1, 4), 'fc_0.w_0', (13, 4))

    Source: Python API design document, section on layer functions.
    """
    helper = LayerHelper("fc", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = helper.input_dtype()
    if int(size) <= 0:
        raise OpValueError(
            "fc needs at least one output feature.", slots=operands(helper.multiple_input()), expected="size > 0",
            received=f"size = {size}", hint="size is the number of output features.", argument="size",
        )  # fmt: skip
    products: list[Variable] = []
    for x, attr in helper.iter_inputs_and_params():
        shape = x.shape
        if len(shape) < 2:
            raise OpValueError(
                f"fc needs an input of rank 2 or more, and {x.name} is {list(shape)}.",
                slots=operands([x]), expected="[batch, features] or more axes", received=list(shape),
                hint=f"layers.data adds the batch unless append_batch_size=False; layers.reshape({x.name}, "
                f"[1, {shape[0] if shape else 1}]) makes a batch of one row.",
            )  # fmt: skip
        if not 0 < num_flatten_dims < len(shape):
            raise OpValueError(
                f"fc cannot keep {num_flatten_dims} axes of {x.name} as rows.", slots=operands([x]),
                expected=f"num_flatten_dims from 1 to {len(shape) - 1}", received=num_flatten_dims,
                hint="axis 0 is the batch; the axes from num_flatten_dims on become the weight's rows.",
            )  # fmt: skip
        width = product(shape[num_flatten_dims:])
        if width < 0:
            raise OpValueError(
                f"fc needs to know every size of {x.name} that it flattens.",
                slots=operands([x]), expected=f"known sizes from axis {num_flatten_dims} on", received=list(shape),
                hint="the weight has one row for each input feature; give the sizes to layers.data or layers.reshape.",
            )  # fmt: skip
        weight = helper.create_parameter(attr if attr is not None else False, [width, int(size)], dtype)
        attrs = {"x_num_col_dims": num_flatten_dims, "y_num_col_dims": 1}
        products += several("mul", {"X": x, "Y": weight}, {"Out": dtype}, attrs, helper=helper)
    total = helper.append_bias_op(helper.append_sum(products), dim_start=num_flatten_dims)
    return helper.append_activation(total)


@naming.layer
def bilinear_tensor_product(
    x: Variable, y: Variable, size: int, act: Any = None, name: str | None = None, param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
) -> Variable:  # fmt: skip
    """Features that are linear in each of two inputs: ``act(x · weight[i] · y + bias[i])`` for each feature i.

    Args:
        x: [N, D].
        y: [N, E].
        size: number of features.
        param_attr: description of the weight [size, D, E].
        bias_attr: description of the bias [1, size]; False leaves it out.

    Returns:
        [N, size].

    Example:
        >>> x, y = fluid.layers.data("x", [5]), fluid.layers.data("y", [4])
        >>> fluid.layers.bilinear_tensor_product(x, y, size=10).shape
        (-1, 10)
    """
    helper = LayerHelper("bilinear_tensor_product", name=name, act=act, param_attr=param_attr, bias_attr=bias_attr)
    for argument, v in (("x", x), ("y", y)):
        if len(v.shape) != 2 or v.shape[1] < 0:
            raise OpValueError(
                f"{argument} of bilinear_tensor_product must be a matrix.", expected="[rows, a known width]",
                received=list(v.shape), hint="layers.flatten() makes one.",
            )  # fmt: skip
    weight = helper.create_parameter(helper.param_attr or False, [size, x.shape[1], y.shape[1]], x.dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, size], x.dtype, is_bias=True) if helper.bias_attr else None
    inputs = {"X": x, "Y": y, "Weight": weight, "Bias": bias}
    return helper.append_activation(several("bilinear_tensor_product", inputs, {"Out": x.dtype}, helper=helper)[0])
