"""Layers that rearrange sequences: concatenate, cut, pad, mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.layers.one_op import one_op
from fluidnb.layers.several import several
from fluidnb.layers.windows import per_axis
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "im2sequence", "sequence_concat", "sequence_enumerate", "sequence_mask", "sequence_pad", "sequence_reshape",
    "sequence_reverse", "sequence_scatter", "sequence_slice", "sequence_unpad",
]  # fmt: skip


@naming.layer
def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """The first sequences of all inputs one after the other, then the second ones, and so on.

    Args:
        input: list of [rows, …] with one level of LoD, as many sequences each.
        name: name of the layer.

    Returns:
        [sum of rows, …] with as many sequences.

    Raises:
        OpTypeError: ``input`` is no list of Variables.
        OpValueError: rows of different shapes.

    Example:
        >>> x, y = (fluid.layers.data(n, [10], lod_level=1) for n in "xy")
        >>> fluid.layers.sequence_concat([x, y]).shape
        (-1, 10)

    Source: Fluid's layers.sequence_concat.
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

    Raises:
        OpTypeError: the input is not a Variable.

    Example:
        >>> fluid.layers.sequence_reshape(fluid.layers.data("x", [2], lod_level=1), new_dim=4).shape
        (-1, 4)

    Source: Fluid's layers.sequence_reshape.
    """
    return one_op("sequence_reshape", {"X": input}, {"new_dim": new_dim})


@naming.layer
def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """Each sequence from its last row to its first.

    Args:
        x: [rows, …] with sequences.
        name: name of the layer.

    Returns:
        Shape and LoD of ``x``.

    Raises:
        OpTypeError: ``x`` is not a Variable.

    Example:
        >>> fluid.layers.sequence_reverse(fluid.layers.data("x", [2], lod_level=1)).lod_level
        1

    Source: Fluid's layers.sequence_reverse.
    """
    return one_op("sequence_reverse", {"X": x}, slot="Y", name=name)


@naming.layer
def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """A part of each sequence.

    Args:
        input: [rows, …] with one level of LoD.
        offset: int64 [sequences, 1]: first row of each part, counted within its sequence.
        length: int64 [sequences, 1]: rows of each part.
        name: name of the layer.

    Returns:
        The parts, with as many sequences.

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: offsets or lengths are no integers.

    Example:
        >>> x = fluid.layers.data("x", [5], lod_level=1)
        >>> start, size = (fluid.layers.data(n, [1], dtype="int64") for n in ("start", "size"))
        >>> fluid.layers.sequence_slice(x, start, size).shape
        (-1, 5)

    Source: Fluid's layers.sequence_slice.
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
        name: name of the layer.

    Returns:
        [sequences, steps, …], and int64 [sequences] with the lengths.

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: ``pad_value`` has another shape.

    Example:
        >>> x = fluid.layers.data("x", [5], lod_level=1)
        >>> out, length = fluid.layers.sequence_pad(x, fluid.layers.zeros([1], "float32"), maxlen=7)
        >>> out.shape, length.shape
        ((-1, 7, 5), (-1,))

    Source: Fluid's layers.sequence_pad.
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
        name: name of the layer.

    Returns:
        [sum of lengths, …] with one level of LoD.

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: ``x`` has one dimension, or the lengths are no integers.

    Example:
        >>> x, length = fluid.layers.data("x", [7, 5]), fluid.layers.data("n", [-1], False, "int64")
        >>> y = fluid.layers.sequence_unpad(x, length)
        >>> y.shape, y.lod_level
        ((-1, 5), 1)

    Source: Fluid's layers.sequence_unpad.
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
        name: name of the layer.

    Returns:
        [shape of ``x``, maxlen]; no gradient passes.

    Raises:
        OpTypeError: ``x`` is not a Variable.
        OpValueError: the lengths are no integers, or ``maxlen`` is 0.

    Example:
        >>> length = fluid.layers.data("n", [-1], False, "int64")
        >>> fluid.layers.sequence_mask(length, maxlen=5).shape
        (-1, 5)

    Source: Fluid's layers.sequence_mask.
    """
    inputs, attrs = {"X": x}, {"out_dtype": dtype}
    if isinstance(maxlen, Variable):
        inputs["MaxLenTensor"] = maxlen
    else:
        attrs["maxlen"] = -1 if maxlen is None else maxlen
    return one_op("sequence_mask", inputs, attrs, slot="Y", dtype=dtype, name=name, stop_gradient=True)


@naming.layer
def sequence_enumerate(input: Variable, win_size: int, pad_value: int = 0, name: str | None = None) -> Variable:
    """Each word with those behind it in its sequence.

    Args:
        input: int32 or int64 [rows, 1] with sequences.
        win_size: how many words each row has.
        pad_value: the value beyond the end of a sequence.
        name: name of the layer.

    Returns:
        [rows, win_size], with the LoD of the input; no gradient passes.

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: rows of more than one number, or no integers.

    Example:
        >>> x = fluid.layers.data("x", [1], dtype="int64", lod_level=1)
        >>> fluid.layers.sequence_enumerate(x, win_size=2).shape
        (-1, 2)

    Source: Fluid's layers.sequence_enumerate.
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
        name: name of the layer.

    Returns:
        Shape of the input.

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: the input is no matrix, or the columns are no integers.

    Example:
        >>> x = fluid.layers.data("x", [6])
        >>> i = fluid.layers.data("i", [1], dtype="int64", lod_level=1)
        >>> fluid.layers.sequence_scatter(x, i, fluid.layers.data("u", [1], lod_level=1)).shape
        (-1, 6)

    Source: Fluid's layers.sequence_scatter.
    """
    return one_op("sequence_scatter", {"X": input, "Ids": index, "Updates": updates}, name=name)


@naming.layer
@takes(input_image_size="im2sequence.Y")
def im2sequence(
    input: Variable,
    filter_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    input_image_size: Variable | None = None,
    out_stride: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """The windows of each image, from left to right and from top to bottom, as a sequence.

    Args:
        input: images [batch, channels, height, width].
        filter_size: height and width of a window, or one number for both.
        stride: stride of the window, alike.
        padding: zeros around the images: one number, [height, width], or [up, left, down, right].
        input_image_size: [batch, 2]: the real heights and widths of the images.
        out_stride: with real sizes: by how much ``input`` is smaller than the images.
        name: name of the layer.

    Returns:
        [windows, channels · window height · window width], with a sequence for each image.

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: sizes that do not fit.

    Example:
        >>> y = fluid.layers.im2sequence(fluid.layers.data("x", [3, 8, 8]), filter_size=2, stride=2)
        >>> y.shape, y.lod_level
        ((-1, 12), 1)

    Source: Fluid's layers.im2sequence.
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
