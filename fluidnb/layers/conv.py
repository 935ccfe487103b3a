"""Layers of convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.initializer import Normal
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.windows import check_image, check_switch, per_axis
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose"]

Sizes = int | Sequence[int]


@naming.layer
def conv2d(
    input: Variable,
    num_filters: int,
    filter_size: Sizes,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_cudnn: bool = True,
    act: Any = None,
    name: str | None = None,
) -> Variable:
    """Convolution of images: ``act(input * filters + bias)``.

    Args:
        input: images [batch, channels, height, width].
        num_filters: channels of the output.
        filter_size: height and width of a filter, or one number for both.
        stride: stride of the window, a pair or one number.
        padding: zeros around the image, a pair or one number.
        dilation: from element to element of a filter, a pair or one number.
        groups: groups of channels that do not see each other; None is one.
        param_attr: description of the filters [num_filters, channels / groups, height, width]; drawn from
            Normal(0, sqrt(2 / (height · width · channels))) unless it says otherwise.
        bias_attr: description of the bias [num_filters]; False leaves it out.
        use_cudnn: whether to use cuDNN on a GPU; False also lets a filter for each channel be ``depthwise_conv2d``.
        act: activation, for example ``"relu"``.
        name: name of the layer; parameters are called ``name.w_0`` and ``name.b_0``.

    Returns:
        [batch, num_filters, height, width] with sizes
        ``(size + 2 · padding - (dilation · (filter - 1) + 1)) / stride + 1``, rounded down.

    Raises:
        OpTypeError: an argument of another type.
        OpValueError: sizes, channels and groups do not fit.

    Example:
        >>> with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     img = fluid.layers.data("img", [1, 28, 28])
        ...     y = fluid.layers.conv2d(img, num_filters=20, filter_size=5, act="relu")
        >>> y.shape, [p.name for p in y.block.all_parameters()]
        ((-1, 20, 24, 24), ['conv2d_0.w_0', 'conv2d_0.b_0'])

    Source: Fluid's layers.conv2d.
    """
    helper = LayerHelper("conv2d", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    return _conv(helper, 2, num_filters, filter_size, stride, padding, dilation, groups, use_cudnn)


@naming.layer
def conv3d(
    input: Variable,
    num_filters: int,
    filter_size: Sizes,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_cudnn: bool = True,
    act: Any = None,
    name: str | None = None,
) -> Variable:
    """Convolution of volumes, as `conv2d` with a depth before height and width.

    Args:
        input: volumes [batch, channels, depth, height, width].
        num_filters: channels of the output.
        filter_size: depth, height and width of a filter, or one number for all.
        stride: stride of the window.
        padding: zeros around the volume.
        dilation: from element to element of a filter.
        groups: groups of channels that do not see each other; None is one.
        param_attr: description of the filters [num_filters, channels / groups, depth, height, width].
        bias_attr: description of the bias [num_filters]; False leaves it out.
        use_cudnn: whether to use cuDNN on a GPU.
        act: activation.
        name: name of the layer.

    Returns:
        [batch, num_filters, depth, height, width].

    Raises:
        OpTypeError: an argument of another type.
        OpValueError: sizes, channels and groups do not fit.

    Example:
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     y = fluid.layers.conv3d(fluid.layers.data("x", [2, 4, 8, 8]), num_filters=3, filter_size=3, padding=1)
        >>> y.shape
        (-1, 3, 4, 8, 8)

    Source: Fluid's layers.conv3d.
    """
    helper = LayerHelper("conv3d", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    return _conv(helper, 3, num_filters, filter_size, stride, padding, dilation, groups, use_cudnn)


def _conv(
    helper: LayerHelper, rank: int, filters: int, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int | None, use_cudnn: bool,
) -> Variable:  # fmt: skip
    layer, x = helper.layer_type, helper.kwargs["input"]
    check_image(x, rank, layer)
    check_switch(use_cudnn, layer)
    channels, count = x.shape[1], groups or 1
    window = per_axis(size, rank, "filter_size", layer)
    _check_counts(layer, filters, channels, count)
    if min(window) < 1:
        raise OpValueError(
            f"The {layer}'s filter_size must be positive.", expected=f"an int of 1 or more, or {rank} of them",
            received=repr(size),
        )  # fmt: skip
    weight = helper.create_parameter(
        helper.param_attr or False, [filters, channels // count, *window], x.dtype,
        default_initializer=Normal(0.0, math.sqrt(2.0 / (math.prod(window) * channels))),
    )  # fmt: skip
    depthwise = layer == "conv2d" and channels == groups and filters % channels == 0 and not use_cudnn
    out = helper.create_tmp_variable(x.dtype)
    helper.append_op(
        type="depthwise_conv2d" if depthwise else layer, inputs={"Input": [x], "Filter": [weight]},
        outputs={"Output": [out]},
        attrs={
            "strides": per_axis(stride, rank, "stride", layer), "paddings": per_axis(padding, rank, "padding", layer),
            "dilations": per_axis(dilation, rank, "dilation", layer), "groups": count, "use_cudnn": use_cudnn,
        },
    )  # fmt: skip
    return helper.append_activation(helper.append_bias_op(out, dim_start=1, dim_end=2))


def _check_counts(layer: str, filters: int, channels: int, groups: int) -> None:
    if channels <= 0:
        raise OpValueError(f"{layer} needs to know the number of channels of its input.", received=channels)
    if channels % groups:
        raise OpValueError(
            "num_channels must be divisible by groups.", expected=f"a divisor of {channels}",
            received=f"groups={groups}", hint="groups=1 connects every input channel with every filter.",
        )  # fmt: skip
    if filters <= 0 or filters % groups:
        raise OpValueError(
            f"{layer} needs filters for each group.", expected=f"a multiple of {groups}",
            received=f"num_filters={filters}",
        )  # fmt: skip


@naming.layer
def conv2d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Sizes | None = None,
    filter_size: Sizes | None = None,
    padding: Sizes = 0,
    stride: Sizes = 1,
    dilation: Sizes = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_cudnn: bool = True,
    act: Any = None,
    name: str | None = None,
) -> Variable:
    """Transposed convolution of images: each element adds a filter, times itself, to a window of the output.

    Args:
        input: images [batch, channels, height, width].
        num_filters: channels of the output.
        output_size: height and width of the output where several are possible, or to choose the filter by.
        filter_size: height and width of a filter; None is what gives ``output_size``.
        padding: elements cut off around the output.
        stride: stride of the window of the output.
        dilation: from element to element of a filter.
        groups: groups of channels that do not see each other; None is one.
        param_attr: description of the filters [channels, num_filters / groups, height, width].
        bias_attr: description of the bias [num_filters]; False leaves it out.
        use_cudnn: whether to use cuDNN on a GPU.
        act: activation.
        name: name of the layer.

    Returns:
        [batch, num_filters, height, width] with sizes
        ``(size - 1) · stride - 2 · padding + dilation · (filter - 1) + 1``, or ``output_size``.

    Raises:
        OpTypeError: an argument of another type.
        OpValueError: sizes, channels and groups do not fit, or neither size is given.

    Example:
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     x = fluid.layers.data("x", [3, 8, 8])
        ...     y = fluid.layers.conv2d_transpose(x, num_filters=2, filter_size=4, stride=2, padding=1)
        >>> y.shape
        (-1, 2, 16, 16)

    Source: Fluid's layers.conv2d_transpose.
    """
    helper = LayerHelper(
        "conv2d_transpose", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name
    )
    return _transposed(helper, 2, num_filters, output_size, filter_size, padding, stride, dilation, groups, use_cudnn)


@naming.layer
def conv3d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Sizes | None = None,
    filter_size: Sizes | None = None,
    padding: Sizes = 0,
    stride: Sizes = 1,
    dilation: Sizes = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_cudnn: bool = True,
    act: Any = None,
    name: str | None = None,
) -> Variable:
    """Transposed convolution of volumes, as `conv2d_transpose` with a depth before height and width.

    Args:
        input: volumes [batch, channels, depth, height, width].
        num_filters: channels of the output.
        output_size: sizes of the output where several are possible, or to choose the filter by.
        filter_size: sizes of a filter; None is what gives ``output_size``.
        padding: elements cut off around the output.
        stride: stride of the window of the output.
        dilation: from element to element of a filter.
        groups: groups of channels that do not see each other; None is one.
        param_attr: description of the filters [channels, num_filters / groups, depth, height, width].
        bias_attr: description of the bias [num_filters]; False leaves it out.
        use_cudnn: whether to use cuDNN on a GPU.
        act: activation.
        name: name of the layer.

    Returns:
        [batch, num_filters, depth, height, width].

    Raises:
        OpTypeError: an argument of another type.
        OpValueError: sizes, channels and groups do not fit, or neither size is given.

    Example:
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     y = fluid.layers.conv3d_transpose(fluid.layers.data("x", [2, 4, 4, 4]), num_filters=3, filter_size=3)
        >>> y.shape
        (-1, 3, 6, 6, 6)

    Source: Fluid's layers.conv3d_transpose.
    """
    helper = LayerHelper(
        "conv3d_transpose", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name
    )
    return _transposed(helper, 3, num_filters, output_size, filter_size, padding, stride, dilation, groups, use_cudnn)


def _transposed(
    helper: LayerHelper, rank: int, filters: int, output: Sizes | None, size: Sizes | None, padding: Sizes,
    stride: Sizes, dilation: Sizes, groups: int | None, use_cudnn: bool,
) -> Variable:  # fmt: skip
    layer, x = helper.layer_type, helper.kwargs["input"]
    check_image(x, rank, layer)
    check_switch(use_cudnn, layer)
    channels, count = x.shape[1], groups or 1
    _check_counts(layer, filters, channels, count)
    pads, strides = per_axis(padding, rank, "padding", layer), per_axis(stride, rank, "stride", layer)
    dilations = per_axis(dilation, rank, "dilation", layer)
    wanted = [] if output is None else per_axis(output, rank, "output_size", layer)
    if size is None and not wanted:
        raise OpValueError("output_size must be set when filter_size is None", received=f"neither, in {layer}")
    if size is None:
        rows = zip(wanted, x.shape[2:], strides, pads, dilations, strict=True)
        window = [(w - (n - 1) * s + 2 * p - 1) // d + 1 for w, n, s, p, d in rows]
    else:
        window = per_axis(size, rank, "filter_size", layer)
    weight = helper.create_parameter(helper.param_attr or False, [channels, filters // count, *window], x.dtype)
    depthwise = layer == "conv2d_transpose" and channels == groups == filters and not use_cudnn
    out = helper.create_tmp_variable(x.dtype)
    helper.append_op(
        type="depthwise_conv2d_transpose" if depthwise else layer, inputs={"Input": [x], "Filter": [weight]},
        outputs={"Output": [out]},
        attrs={"output_size": wanted, "strides": strides, "paddings": pads, "dilations": dilations, "groups": count,
               "use_cudnn": use_cudnn},
    )  # fmt: skip
    return helper.append_activation(helper.append_bias_op(out, dim_start=1, dim_end=2))
