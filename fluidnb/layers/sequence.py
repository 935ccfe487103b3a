"""Layers over sequences: pooling, filters, cutting, padding, masks."""

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.conv import per_axis
from fluidnb.layers.fc import operands
from fluidnb.layers.one_op import as_attr, as_input, family, one_op, several
from fluidnb.op import takes
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "im2sequence", "lod_reset", "row_conv", "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand",
    "sequence_expand_as", "sequence_first_step", "sequence_last_step", "sequence_mask", "sequence_pad", "sequence_pool",
    "sequence_reshape", "sequence_reverse", "sequence_scatter", "sequence_slice", "sequence_softmax", "sequence_unpad",
]  # fmt: skip


@naming.layer
@takes(pool_type=("average", "sum", "sqrt", "max", "last", "first"))
def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """One row from each sequence of the last level.

    Args:
        input: [rows, …] with sequences.
        pool_type: ``"average"``, ``"sum"``, ``"sqrt"`` (the sum over the square root of the length), ``"max"``,
            ``"last"`` or ``"first"``.
        is_test: kept for old scripts; it changes nothing.
        pad_value: what a sequence without rows gives.

    Returns:
        [sequences, …]; its LoD lacks the last level.

    Example:
        >>> x = fluid.layers.data("x", [32], lod_level=1)
        >>> y = fluid.layers.sequence_pool(x, "average")
        >>> y.shape, y.lod_level
        ((-1, 32), 0)
    """
    attrs = {"pooltype": str(pool_type).upper(), "is_test": bool(is_test), "pad_value": float(pad_value)}
    outputs = {"Out": input.dtype, "MaxIndex": "int32"}
    return several("sequence_pool", {"X": input}, outputs, attrs, constant=("MaxIndex",))[0]


@family
def _step(name: str, input: Variable) -> Variable:
    """The {summary} row of each sequence.

    Args:
        input: [rows, …] with sequences.

    Returns:
        [sequences, …]; its LoD lacks the last level.

    Example:
        >>> fluid.layers.{name}(fluid.layers.data("x", [32], lod_level=1)).shape
        (-1, 32)
    """
    return sequence_pool(input, "first" if name == "sequence_first_step" else "last")


sequence_first_step = _step("sequence_first_step", "first", {"input": "sequence_pool.X"})
sequence_last_step = _step("sequence_last_step", "last", {"input": "sequence_pool.X"})


@naming.layer
def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Probabilities that sum to one over each sequence of the last level.

    Args:
        input: [rows, 1] with sequences.

    Returns:
        Shape and LoD of the input.

    Example:
        >>> y = fluid.layers.sequence_softmax(fluid.layers.data("x", [1], lod_level=1))
        >>> y.shape, y.lod_level
        ((-1, 1), 1)
    """
    return one_op("sequence_softmax", {"X": input}, {"use_cudnn": bool(use_cudnn)}, name=name)


@naming.layer
def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """Rows, or sequences where there are any, repeated as often as another variable's sequences are long.

    Args:
        x: [n, …], with one level of LoD or without: n rows or sequences.
        y: with sequences, n at level ``ref_level``; its values do not matter.
        ref_level: the level of ``y`` whose lengths count; -1 is the last.

    Returns:
        The rows or sequences of ``x``, each as often as the sequence of ``y`` is long; a length of 0 leaves it out.
        With a LoD when ``x`` has one.

    Example:
        >>> x, y = fluid.layers.data("x", [10]), fluid.layers.data("y", [20], lod_level=1)
        >>> fluid.layers.sequence_expand(x, y).shape
        (-1, 10)
    """
    return one_op("sequence_expand", {"X": x, "Y": y}, {"ref_level": ref_level}, name=name)


@naming.layer
def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Rows, one for each sequence of another variable, repeated to be as many as its rows.

    Args:
        x: [sequences of ``y``, …].
        y: with one level of LoD; its values do not matter.

    Returns:
        [rows of ``y``, …], with the LoD of ``y``.

    Example:
        >>> x, y = fluid.layers.data("x", [10]), fluid.layers.data("y", [20], lod_level=1)
        >>> fluid.layers.sequence_expand_as(x, y).lod_level
        1
    """
    return one_op("sequence_expand_as", {"X": x, "Y": y}, name=name)


@naming.layer
def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """The first sequences of all inputs one after the other, then the second ones, and so on.

    Args:
        input: list of [rows, …] with one level of LoD, as many sequences each.

    Returns:
        [sum of rows, …] with as many sequences.

    Example:
        >>> x, y = (fluid.layers.data(n, [10], lod_level=1) for n in "xy")
        >>> fluid.layers.sequence_concat([x, y]).shape
        (-1, 10)
    """
    return one_op("sequence_concat", {"X": list(input)}, name=name)


@naming.layer
def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """The same elements in rows of another width; sequences become longer or shorter.

    Args:
        input: [rows, width] with one level of LoD.
        new_dim: the new width; the elements of each sequence must divide by it.

    Returns:
        [rows · width / new_dim, new_dim].

    Example:
        >>> fluid.layers.sequence_reshape(fluid.layers.data("x", [2], lod_level=1), new_dim=4).shape
        (-1, 4)
    """
    return one_op("sequence_reshape", {"X": input}, {"new_dim": new_dim})


@naming.layer
def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """Each sequence from its last row to its first.

    Args:
        x: [rows, …] with sequences.

    Returns:
        Shape and LoD of ``x``.

    Example:
        >>> fluid.layers.sequence_reverse(fluid.layers.data("x", [2], lod_level=1)).lod_level
        1
    """
    return one_op("sequence_reverse", {"X": x}, slot="Y", name=name)


@naming.layer
def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """A part of each sequence.

    Args:
        input: [rows, …] with one level of LoD.
        offset: int64 [sequences, 1]: first row of each part, counted within its sequence.
        length: int64 [sequences, 1]: rows of each part.

    Returns:
        The parts, with as many sequences.

    Example:
        >>> x = fluid.layers.data("x", [5], lod_level=1)
        >>> start, size = (fluid.layers.data(n, [1], dtype="int64") for n in ("start", "size"))
        >>> fluid.layers.sequence_slice(x, start, size).shape
        (-1, 5)
    """
    return one_op("sequence_slice", {"X": input, "Offset": offset, "Length": length}, name=name)


@naming.layer
def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """Sequences as rows of a rectangle, filled up behind their ends.

    Args:
        x: [rows, …] with one level of LoD.
        pad_value: what fills up: one number, or the shape of a row.
        maxlen: steps of the rectangle; None for those of the longest sequence.

    Returns:
        [sequences, steps, …], and int64 [sequences] with the lengths.

    Example:
        >>> x = fluid.layers.data("x", [5], lod_level=1)
        >>> out, length = fluid.layers.sequence_pad(x, fluid.layers.zeros([1], "float32"), maxlen=7)
        >>> out.shape, length.shape
        ((-1, 7, 5), (-1,))
    """
    attrs = {"padded_length": -1 if maxlen is None else maxlen}
    outputs = {"Out": x.dtype, "Length": "int64"}
    out, length = several(
        "sequence_pad", {"X": x, "PadValue": pad_value}, outputs, attrs, name=name, constant=("Length",)
    )
    return out, length


@naming.layer
def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """The first steps of each row of a rectangle, as sequences.

    Args:
        x: [sequences, steps, …].
        length: int64 [sequences]: how many steps of each are its own.

    Returns:
        [sum of lengths, …] with one level of LoD.

    Example:
        >>> x, length = fluid.layers.data("x", [7, 5]), fluid.layers.data("n", [-1], False, "int64")
        >>> y = fluid.layers.sequence_unpad(x, length)
        >>> y.shape, y.lod_level
        ((-1, 5), 1)
    """
    return one_op("sequence_unpad", {"X": x, "Length": length}, name=name)


@naming.layer
def sequence_mask(
    x: Variable, maxlen: int | Variable | None = None, dtype: Any = "int64", name: str | None = None
) -> Variable:
    """1 as far as a length goes, 0 behind it.

    Args:
        x: integers, any shape: lengths.
        maxlen: how many columns; None for the longest length; a Variable of one element for its value.
        dtype: dtype of the mask.

    Returns:
        [shape of ``x``, maxlen]; no gradient passes.

    Example:
        >>> length = fluid.layers.data("n", [-1], False, "int64")
        >>> fluid.layers.sequence_mask(length, maxlen=5).shape
        (-1, 5)
    """
    columns = -1 if maxlen is None else maxlen
    inputs, attrs = {"X": x, "MaxLenTensor": as_input(columns)}, {"out_dtype": dtype, "maxlen": as_attr(columns)}
    return one_op("sequence_mask", inputs, attrs, slot="Y", dtype=dtype, name=name, stop_gradient=True)


@naming.layer
def sequence_enumerate(input: Variable, win_size: int, pad_value: int = 0, name: str | None = None) -> Variable:
    """Each word with those behind it in its sequence.

    Args:
        input: int32 or int64 [rows, 1] with sequences.
        win_size: how many words each row has.
        pad_value: the value beyond the end of a sequence.

    Returns:
        [rows, win_size], with the LoD of the input; no gradient passes.

    Example:
        >>> x = fluid.layers.data("x", [1], dtype="int64", lod_level=1)
        >>> fluid.layers.sequence_enumerate(x, win_size=2).shape
        (-1, 2)
    """
    attrs = {"win_size": win_size, "pad_value": pad_value}
    return one_op("sequence_enumerate", {"X": input}, attrs, name=name, stop_gradient=True)


@naming.layer
@takes(index="sequence_scatter.Ids")
def sequence_scatter(input: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """A matrix with sequence i of the updates added to some elements of its row i.

    Args:
        input: [n, m].
        index: int64 [k, 1] with n sequences: columns.
        updates: [k, 1] with the same LoD.

    Returns:
        Shape of the input.

    Example:
        >>> x = fluid.layers.data("x", [6])
        >>> i = fluid.layers.data("i", [1], dtype="int64", lod_level=1)
        >>> fluid.layers.sequence_scatter(x, i, fluid.layers.data("u", [1], lod_level=1)).shape
        (-1, 6)
    """
    return one_op("sequence_scatter", {"X": input, "Ids": index, "Updates": updates}, name=name)


@naming.layer
@takes(input_image_size="im2sequence.Y")
def im2sequence(
    input: Variable, filter_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, input_image_size: Variable | None = None, out_stride: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """The windows of each image, from left to right and from top to bottom, as a sequence.

    Args:
        input: images [batch, channels, height, width].
        filter_size: height and width of a window, or one number for both.
        stride: stride of the window, alike.
        padding: zeros around the images: one number, [height, width], or [up, left, down, right].
        input_image_size: [batch, 2]: the real heights and widths of the images.
        out_stride: with real sizes: by how much ``input`` is smaller than the images.

    Returns:
        [windows, channels · window height · window width], with a sequence for each image.

    Example:
        >>> y = fluid.layers.im2sequence(fluid.layers.data("x", [3, 8, 8]), filter_size=2, stride=2)
        >>> y.shape, y.lod_level
        ((-1, 12), 1)
    """
    layer = "im2sequence"
    sides = not isinstance(padding, int) and len(padding) == 4
    around = list(padding) if sides else per_axis(padding, 2, "padding", layer) * 2  # type: ignore[arg-type]
    attrs: dict[str, Any] = {
        "kernels": per_axis(filter_size, 2, "filter_size", layer), "strides": per_axis(stride, 2, "stride", layer),
        "paddings": around,
    }  # fmt: skip
    inputs = {"X": input}
    if input_image_size is not None:
        inputs["Y"] = input_image_size
        attrs["out_stride"] = per_axis(out_stride, 2, "out_stride", layer)
    return one_op(layer, inputs, attrs, name=name)


def row_width(input: Variable, layer: str, batches: bool = False) -> int:
    """The width of the rows that a layer takes, or batches of rows, which the shapes of its parameters need."""
    if len(input.shape) not in (2, 2 + batches) or input.shape[-1] < 1:
        raise OpValueError(
            f"{layer} needs rows of a known width.", slots=operands([input]),
            expected="[rows, width]" + " or [batch, steps, width]" * batches, received=list(input.shape),
            hint="layers.embedding or layers.fc in front gives rows of a width.",
        )  # fmt: skip
    return int(input.shape[-1])


@naming.layer
def sequence_conv(
    input: Variable, num_filters: int, filter_size: int = 3, filter_stride: int = 1, padding: Any = None,
    bias_attr: ParamAttrLike = None, param_attr: ParamAttrLike = None, act: Any = None, name: str | None = None,
) -> Variable:  # fmt: skip
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

    Returns:
        [rows, num_filters], with the LoD of the input.

    Example:
        >>> x = fluid.layers.data("x", [32], lod_level=1)
        >>> y = fluid.layers.sequence_conv(x, num_filters=16, filter_size=3, act="tanh")
        >>> y.shape, y.lod_level, y.param.shape
        ((-1, 16), 1, (96, 16))
    """
    width = row_width(input, "sequence_conv")
    helper = LayerHelper("sequence_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    weight = helper.create_parameter(helper.param_attr or False, [filter_size * width, num_filters], input.dtype)
    attrs = {"contextStride": filter_stride, "contextStart": -int(filter_size // 2), "contextLength": filter_size}
    inputs = {"X": input, "Filter": weight}
    out = several("sequence_conv", inputs, {"Out": input.dtype}, attrs, helper=helper)[0]
    return helper.append_activation(helper.append_bias_op(out))


@naming.layer
def row_conv(input: Variable, future_context_size: int, param_attr: ParamAttrLike = None, act: Any = None) -> Variable:
    """Row convolution: looks ahead along each sequence with one filter per column (Amodei et al. 2015).

    Args:
        input: [rows, width] with sequences, or [batch, steps, width].
        future_context_size: how many future rows it reads.
        param_attr: description of the filter [future_context_size + 1, width].

    Returns:
        Shape and LoD of the input.

    Example:
        >>> y = fluid.layers.row_conv(fluid.layers.data("x", [16], lod_level=1), future_context_size=2)
        >>> y.shape, y.param.shape
        ((-1, 16), (3, 16))
    """
    width = row_width(input, "row_conv", batches=True)
    helper = LayerHelper("row_conv", param_attr=param_attr, act=act)
    weight = helper.create_parameter(helper.param_attr or False, [future_context_size + 1, width], input.dtype)
    inputs = {"X": input, "Filter": weight}
    return helper.append_activation(several("row_conv", inputs, {"Out": input.dtype}, helper=helper)[0])


@naming.layer
def lod_reset(x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None) -> Variable:
    """The same rows cut into other sequences.

    Args:
        x: rows.
        y: a variable whose LoD is taken; one without LoD has the offsets as its values, int32.
        target_lod: offsets from 0 to the number of rows, where there is no ``y``.

    Returns:
        Shape of ``x``, with the new LoD.

    Raises:
        RuleError: neither ``y`` nor ``target_lod`` is given.

    Example:
        >>> y = fluid.layers.lod_reset(fluid.layers.data("x", [3]), target_lod=[0, 4, 6])
        >>> y.lod_level
        1
    """
    return one_op("lod_reset", {"X": x, "Y": y}, {"target_lod": target_lod})
