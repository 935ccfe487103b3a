"""Layers with a filter over the rows of sequences."""

from __future__ import annotations

from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.fc import operands
from fluidnb.layers.one_op import check_variable
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["row_conv", "sequence_conv"]


def row_width(input: Variable, layer: str) -> int:
    """The width of the rows that a layer takes, which the shapes of its parameters need.

    Args:
        input: the rows [N, width].
        layer: the layer's name, for the message.

    Raises:
        OpTypeError: it is no Variable.
        OpValueError: it has other dimensions, or an unknown width.

    Example:
        >>> row_width(fluid.layers.data("x", [3]), "nce")
        3
    """
    check_variable(input, "input", layer)
    if len(input.shape) != 2 or input.shape[1] < 1:
        raise OpValueError(
            f"{layer} needs rows of a known width.", slots=operands([input]), expected="[rows, width]",
            received=list(input.shape), hint="layers.embedding or layers.fc in front gives rows of a width.",
        )  # fmt: skip
    return int(input.shape[1])


@naming.layer
def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: Any = None,
    bias_attr: ParamAttrLike = None,
    param_attr: ParamAttrLike = None,
    act: Any = None,
    name: str | None = None,
) -> Variable:
    """Filters over each row and its neighbours in the sequence; outside a sequence there are zeros.

    A filter sees rows ``t - filter_size // 2`` to ``t - filter_size // 2 + filter_size - 1``.

    Args:
        input: [rows, width] with one level of LoD.
        num_filters: how many filters.
        filter_size: how many rows a filter sees.
        filter_stride: from row to row; only 1.
        padding: kept for old scripts; there are always zeros.
        bias_attr: description of the bias [num_filters]; False leaves it out.
        param_attr: description of the filters [filter_size · width, num_filters].
        act: activation.
        name: name of the layer.

    Returns:
        [rows, num_filters], with the LoD of the input.

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: the width is not known, or a size is out of range.

    Example:
        >>> x = fluid.layers.data("x", [32], lod_level=1)
        >>> y = fluid.layers.sequence_conv(x, num_filters=16, filter_size=3, act="tanh")
        >>> y.shape, y.lod_level, y.param.shape
        ((-1, 16), 1, (96, 16))

    Source: Fluid's layers.sequence_conv.
    """
    width = row_width(input, "sequence_conv")
    helper = LayerHelper("sequence_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    weight = helper.create_parameter(helper.param_attr or False, [filter_size * width, num_filters], input.dtype)
    out = helper.create_tmp_variable(input.dtype)
    attrs = {
        "contextStride": filter_stride, "contextStart": -int(filter_size // 2), "contextLength": filter_size,
    }  # fmt: skip
    helper.append_op(
        type="sequence_conv", inputs={"X": [input], "Filter": [weight]}, outputs={"Out": [out]}, attrs=attrs
    )
    return helper.append_activation(helper.append_bias_op(out))


@naming.layer
def row_conv(input: Variable, future_context_size: int, param_attr: ParamAttrLike = None, act: Any = None) -> Variable:
    """Row convolution: looks ahead along each sequence with one filter per column (Amodei et al. 2015).

    Args:
        input: [rows, width] with sequences.
        future_context_size: how many future rows it reads.
        param_attr: description of the filter [future_context_size + 1, width].
        act: activation.

    Returns:
        Shape and LoD of the input.

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: the width is not known.

    Example:
        >>> y = fluid.layers.row_conv(fluid.layers.data("x", [16], lod_level=1), future_context_size=2)
        >>> y.shape, y.param.shape
        ((-1, 16), (3, 16))

    Source: Fluid's layers.row_conv.
    """
    width = row_width(input, "row_conv")
    helper = LayerHelper("row_conv", param_attr=param_attr, act=act)
    weight = helper.create_parameter(helper.param_attr or False, [future_context_size + 1, width], input.dtype)
    out = helper.create_tmp_variable(input.dtype)
    helper.append_op(type="row_conv", inputs={"X": [input], "Filter": [weight]}, outputs={"Out": [out]})
    return helper.append_activation(out)
