"""Layers of convolution and pooling, over images, volumes and trees."""

import math
from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpTypeError, OpValueError, near, typed
from fluidnb.initializer import Normal
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import family, one_op, several
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values import dtypes

__all__ = [
    "adaptive_pool2d", "adaptive_pool3d", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "pool2d",
    "pool3d", "tree_conv",
]  # fmt: skip


def per_axis(value: int | Sequence[int], rank: int, argument: str, layer: str) -> list[int]:
    """A number for each axis of an image; one alone serves for all."""
    values = [value] * rank if isinstance(value, int) else list(value)
    if any(isinstance(v, bool) for v in values):
        raise OpTypeError(
            f"The {layer}'s {argument} must be whole numbers.", expected=f"an int, or {rank} of them",
            received=typed(value), argument=argument,
        )  # fmt: skip
    if len(values) != rank:
        raise OpValueError(
            f"The {layer}'s {argument} must be a list or tuple of {rank} integers.",
            expected=f"an int, or {rank} of them", received=repr(value), argument=argument,
        )  # fmt: skip
    return values


def check_image(input: Variable, rank: int, layer: str) -> None:
    """Raise unless a variable is a batch of images with a known number of channels."""
    if len(input.shape) != rank + 2:
        axes = ", ".join(["depth", "height", "width"][-rank:])
        raise OpValueError(
            f"The input of {layer} must be a {rank + 2}-D tensor.",
            slots=[("input", input.name, dtypes.dtype_name(input.dtype), input.shape)],
            expected=f"[batch, channels, {axes}]", received=list(input.shape),
            hint='layers.data("img", [channels, height, width]) adds the batch; layers.reshape gives other shapes.',
            argument="input",
        )  # fmt: skip


def check_switch(value: object, layer: str) -> None:
    """Raise unless ``use_cudnn`` is True or False."""
    if not isinstance(value, bool):
        raise OpTypeError(f"use_cudnn of {layer} should be True or False.", received=repr(value))


Sizes = int | Sequence[int]


@family
def _conv(
    op_type: str, input: Variable, num_filters: int, filter_size: Sizes, stride: Sizes = 1, padding: Sizes = 0,
    dilation: Sizes = 1, groups: int | None = None, param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None,
    use_cudnn: bool = True, act: Any = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """Convolution of {summary}: ``act(input * filters + bias)``.

    Args:
        input: {summary} [batch, channels, {axes}].
        num_filters: channels of the output.
        filter_size: {axes} of a filter, or one number for all.
        stride: stride of the window, one number or one for each axis.
        padding: zeros around the {summary}, alike.
        dilation: from element to element of a filter, alike.
        groups: groups of channels that do not see each other; None is one.
        param_attr: description of the filters [num_filters, channels / groups, {axes}]; drawn from
            Normal(0, sqrt(2 / (elements of a filter · channels))) unless it says otherwise.
        bias_attr: description of the bias [num_filters]; False leaves it out.
        use_cudnn: whether to use cuDNN on a GPU; False also lets a filter for each channel of images be
            ``depthwise_conv2d``.
        name: name of the layer; parameters are called ``name.w_0`` and ``name.b_0``.

    Returns:
        [batch, num_filters, {axes}] with sizes
        ``(size + 2 · padding - (dilation · (filter - 1) + 1)) / stride + 1``, rounded down.

    Example:
        >>> x = fluid.layers.data("x", {shape})
        >>> fluid.layers.{name}(x, num_filters=20, filter_size=5, act="relu").shape
        {result}
    """
    helper = LayerHelper(op_type, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    rank = _rank(op_type, input, use_cudnn)
    channels, count = input.shape[1], groups or 1
    window = per_axis(filter_size, rank, "filter_size", op_type)
    _check_counts(op_type, num_filters, channels, count)
    if min(window) < 1:
        raise OpValueError(
            f"The {op_type}'s filter_size must be positive.", expected=f"an int of 1 or more, or {rank} of them",
            received=repr(filter_size),
        )  # fmt: skip
    weight = helper.create_parameter(
        helper.param_attr or False, [num_filters, channels // count, *window], input.dtype,
        default_initializer=Normal(0.0, math.sqrt(2.0 / (math.prod(window) * channels))),
    )  # fmt: skip
    depthwise = op_type == "conv2d" and channels == groups and num_filters % channels == 0 and not use_cudnn
    attrs = {
        "strides": per_axis(stride, rank, "stride", op_type), "paddings": per_axis(padding, rank, "padding", op_type),
        "dilations": per_axis(dilation, rank, "dilation", op_type), "groups": count, "use_cudnn": use_cudnn,
    }  # fmt: skip
    return _convolved(helper, "depthwise_conv2d" if depthwise else op_type, input, weight, attrs)


def _convolved(helper: LayerHelper, op_type: str, input: Variable, weight: Variable, attrs: dict[str, Any]) -> Variable:
    """Append the operator, its bias and its activation."""
    inputs = {"Input": input, "Filter": weight}
    out = several(op_type, inputs, {"Output": input.dtype}, attrs, helper=helper)[0]
    return helper.append_activation(helper.append_bias_op(out, dim_start=1, dim_end=2))


_IMAGES, _VOLUMES = {"axes": "height, width"}, {"axes": "depth, height, width"}
conv2d = _conv("conv2d", "images", shape="[1, 28, 28]", result="(-1, 20, 24, 24)", **_IMAGES)
conv3d = _conv("conv3d", "volumes", shape="[1, 8, 28, 28]", result="(-1, 20, 4, 24, 24)", **_VOLUMES)


def _rank(op_type: str, input: Variable, use_cudnn: bool) -> int:
    """The axes of an image, 2 or 3, after the checks that all convolutions share."""
    rank = 3 if "3d" in op_type else 2
    check_image(input, rank, op_type)
    check_switch(use_cudnn, op_type)
    return rank


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


@family
def _conv_transpose(
    op_type: str, input: Variable, num_filters: int, output_size: Sizes | None = None, filter_size: Sizes | None = None,
    padding: Sizes = 0, stride: Sizes = 1, dilation: Sizes = 1, groups: int | None = None,
    param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None, use_cudnn: bool = True, act: Any = None,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """Transposed convolution of {summary}: each element adds a filter, times itself, to a window of the output.

    Args:
        input: {summary} [batch, channels, {axes}].
        num_filters: channels of the output.
        output_size: {axes} of the output where several are possible, or to choose the filter by.
        filter_size: {axes} of a filter; None is what gives ``output_size``.
        padding: elements cut off around the output.
        stride: stride of the window of the output.
        dilation: from element to element of a filter.
        groups: groups of channels that do not see each other; None is one.
        param_attr: description of the filters [channels, num_filters / groups, {axes}].
        bias_attr: description of the bias [num_filters]; False leaves it out.

    Returns:
        [batch, num_filters, {axes}] with sizes
        ``(size - 1) · stride - 2 · padding + dilation · (filter - 1) + 1``, or ``output_size``.

    Raises:
        OpValueError: neither size is given.

    Example:
        >>> x = fluid.layers.data("x", {shape})
        >>> fluid.layers.{name}(x, num_filters=2, filter_size=4, stride=2, padding=1).shape
        {result}
    """
    helper = LayerHelper(op_type, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    rank = _rank(op_type, input, use_cudnn)
    channels, count = input.shape[1], groups or 1
    _check_counts(op_type, num_filters, channels, count)
    pads, strides = per_axis(padding, rank, "padding", op_type), per_axis(stride, rank, "stride", op_type)
    dilations = per_axis(dilation, rank, "dilation", op_type)
    wanted = [] if output_size is None else per_axis(output_size, rank, "output_size", op_type)
    if filter_size is None and not wanted:
        raise OpValueError("output_size must be set when filter_size is None", received=f"neither, in {op_type}")
    if filter_size is None:
        if min(dilations) < 1:
            raise OpValueError(f"dilation of {op_type} must be above 0.", expected="from 1 on", received=dilations)
        rows = zip(wanted, input.shape[2:], strides, pads, dilations, strict=True)
        window = [(w - (n - 1) * s + 2 * p - 1) // d + 1 for w, n, s, p, d in rows]
    else:
        window = per_axis(filter_size, rank, "filter_size", op_type)
    weight = helper.create_parameter(helper.param_attr or False, [channels, num_filters // count, *window], input.dtype)
    depthwise = op_type == "conv2d_transpose" and channels == groups == num_filters and not use_cudnn
    attrs = {
        "output_size": wanted, "strides": strides, "paddings": pads, "dilations": dilations, "groups": count,
        "use_cudnn": use_cudnn,
    }  # fmt: skip
    return _convolved(helper, "depthwise_conv2d_transpose" if depthwise else op_type, input, weight, attrs)


conv2d_transpose = _conv_transpose("conv2d_transpose", "images", shape="[3, 8, 8]", result="(-1, 2, 16, 16)", **_IMAGES)
conv3d_transpose = _conv_transpose(
    "conv3d_transpose", "volumes", shape="[3, 4, 8, 8]", result="(-1, 2, 8, 16, 16)", **_VOLUMES
)


@family
def _pool(
    op_type: str, input: Variable, pool_size: Sizes = -1, pool_type: str = "max", pool_stride: Sizes = 1,
    pool_padding: Sizes = 0, global_pooling: bool = False, use_cudnn: bool = True, ceil_mode: bool = False,
    name: str | None = None, exclusive: bool = True,
) -> Variable:  # fmt: skip
    """The largest element, or the mean, of each window of {summary}.

    Args:
        input: {summary} [batch, channels, {axes}].
        pool_size: {axes} of a window, or one number for all.
        pool_stride: stride of the window.
        pool_padding: how far windows may reach over the {summary} on each side.
        global_pooling: one window that is the whole input, whatever ``pool_size``.
        ceil_mode: whether a window that hangs over the end counts.
        exclusive: whether a mean is of the elements of the input alone, without the padding.

    Returns:
        [batch, channels, {axes}] with sizes ``(size + 2 · padding - window) / stride + 1``, rounded down, or up
        with ``ceil_mode``.

    Example:
        >>> fluid.layers.{name}(fluid.layers.data("x", {shape}), pool_size=2, pool_stride=2).shape
        {result}
    """
    if pool_type not in ("max", "avg"):
        raise OpValueError(
            f"Unknown pool_type: '{pool_type}'. It can only be 'max' or 'avg'.", expected="'max' or 'avg'",
            received=repr(pool_type),
            hint=near(str(pool_type), ("max", "avg")) or "max takes the largest, avg the mean.",
        )  # fmt: skip
    rank = 3 if op_type == "pool3d" else 2
    check_image(input, rank, op_type)
    check_switch(use_cudnn, op_type)
    if not global_pooling and pool_size == -1:
        raise OpValueError(
            "When the global_pooling is False, pool_size must be passed and be a valid value.",
            expected="sizes of a window", received=f"pool_size={pool_size}",
        )  # fmt: skip
    attrs = {
        "pooling_type": pool_type, "ksize": per_axis(pool_size, rank, "pool_size", op_type),
        "global_pooling": global_pooling,
        "strides": per_axis(pool_stride, rank, "pool_stride", op_type),
        "paddings": per_axis(pool_padding, rank, "pool_padding", op_type),
        "use_cudnn": use_cudnn, "ceil_mode": ceil_mode, "exclusive": exclusive,
    }  # fmt: skip
    return one_op(op_type, {"X": input}, attrs, name=name)


_TAKES = {"pool_type": ("max", "avg")}
pool2d = _pool("pool2d", "images", _TAKES, axes="height, width", shape="[3, 8, 8]", result="(-1, 3, 4, 4)")
pool3d = _pool(
    "pool3d", "volumes", _TAKES, axes="depth, height, width", shape="[3, 4, 8, 8]", result="(-1, 3, 2, 4, 4)"
)


@family
def _adaptive_pool(
    op_type: str, input: Variable, pool_size: Sizes, pool_type: str = "max", require_index: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Adaptive max or average pooling of {summary} to a given number of windows.

    Window i of n along an axis goes from ``floor(i · size / n)`` to before ``ceil((i + 1) · size / n)``.

    Args:
        input: {summary} [batch, channels, {axes}].
        pool_size: how many windows there are along each axis, or one number for all.
        require_index: whether to return, for ``"max"``, also the positions of the elements.

    Returns:
        [batch, channels, windows along each axis]; with ``require_index`` also int32 of that shape: positions in the
        input, counted row by row.

    Example:
        >>> y, where = fluid.layers.{name}(fluid.layers.data("x", {shape}), 3, require_index=True)
        >>> y.shape, where.shape
        ({result}, {result})
    """
    if pool_type not in ("max", "avg"):
        raise OpValueError(
            f"Unknown pool_type: '{pool_type}'. It can only be 'max' or 'avg'.", expected="'max' or 'avg'",
            received=repr(pool_type),
            hint=near(str(pool_type), ("max", "avg")) or "max takes the largest, avg the mean.",
        )  # fmt: skip
    if pool_type == "avg" and require_index:
        raise OpValueError(
            "invalid setting 'require_index' true when 'pool_type' is 'avg'.", expected="require_index=False",
            received="require_index=True", hint="a mean comes from no one place.",
        )  # fmt: skip
    rank = 3 if op_type == "adaptive_pool3d" else 2
    check_image(input, rank, op_type)
    attrs = {"ksize": per_axis(pool_size, rank, "pool_size", op_type), "adaptive": True}
    if pool_type == "avg":
        return one_op(f"pool{rank}d", {"X": input}, {**attrs, "pooling_type": pool_type}, name=name)
    outputs = {"Out": input.dtype, "Mask": "int32"}
    out, mask = several(f"max_pool{rank}d_with_index", {"X": input}, outputs, attrs, name=name, constant=("Mask",))
    return (out, mask) if require_index else out


adaptive_pool2d = _adaptive_pool(
    "adaptive_pool2d", "images", {"input": "pool2d.X", "pool_type": ("max", "avg")}, axes="height, width",
    shape="[3, 7, 9]", result="(-1, 3, 3, 3)",
)  # fmt: skip
adaptive_pool3d = _adaptive_pool(
    "adaptive_pool3d", "volumes", {"input": "pool3d.X", "pool_type": ("max", "avg")}, axes="depth, height, width",
    shape="[3, 4, 7, 9]", result="(-1, 3, 3, 3, 3)",
)  # fmt: skip


@naming.layer
def tree_conv(
    nodes_vector: Variable, edge_set: Variable, output_size: int, num_filters: int = 1, max_depth: int = 2,
    act: str | None = "tanh", param_attr: Any = None, bias_attr: Any = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """Convolves the features of tree nodes with those below them.

    Args:
        nodes_vector: float32 or float64 [batch, nodes, width].
        edge_set: int32 [batch, edges, 2]: parent and child, counted from 1; a row with a 0 ends the tree.
        output_size: size of the result for each filter.
        num_filters: how many filters.
        max_depth: levels of a patch, its root included.
        param_attr: of the filter [width, 3, output_size, num_filters].
        bias_attr: of the bias; False for none.
        name: start of the names of the parameters.

    Returns:
        [batch, nodes, output_size, num_filters].

    Example:
        >>> nodes = fluid.layers.data("nodes", [10, 5])
        >>> edges = fluid.layers.data("edges", [9, 2], dtype="int32")
        >>> fluid.layers.tree_conv(nodes, edges, 6).shape
        (-1, 10, 6, 1)
    """
    helper = LayerHelper("tree_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    if len(nodes_vector.shape) != 3:
        raise OpValueError(
            "nodes_vector of tree_conv must have three dimensions.", expected="[batch, nodes, width]",
            received=list(nodes_vector.shape),
        )  # fmt: skip
    shape = [nodes_vector.shape[2], 3, output_size, num_filters]
    weight = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype=nodes_vector.dtype)
    inputs = {"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": weight}
    out = several("tree_conv", inputs, {"Out": nodes_vector.dtype}, {"max_depth": max_depth}, helper=helper)[0]
    return helper.append_activation(helper.append_bias_op(out) if helper.bias_attr else out)
