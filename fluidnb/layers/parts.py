"""Layers that take tensors apart, join them, pick rows and add borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.arguments import Count
from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.creation import fill_constant
from fluidnb.layers.one_op import one_op
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "crop", "expand", "gather", "multiplex", "pad", "pad_constant_like", "reverse", "scatter", "slice", "split",
    "stack", "unstack",
]  # fmt: skip


@naming.layer
def split(
    input: Variable, num_or_sections: Count | Sequence[int], dim: int = -1, name: str | None = None
) -> list[Variable]:
    """A tensor cut into parts along an axis.

    Args:
        input: at least one axis.
        num_or_sections: how many parts of equal size, or the size of each; one may be -1, which takes what is left.
        dim: the axis, from the end when negative.
        name: name of the layer.

    Returns:
        The parts, in order.

    Raises:
        OpValueError: the size along the axis cannot be cut so.

    Example:
        >>> a, b = fluid.layers.split(fluid.layers.data("x", [6, 4]), num_or_sections=[2, -1], dim=1)
        >>> a.shape, b.shape
        ((-1, 2, 4), (-1, 4, 4))
    """
    helper = LayerHelper("split", name=name)
    if isinstance(num_or_sections, int):
        count, attrs = num_or_sections, {"num": num_or_sections, "sections": []}
    else:
        count, attrs = len(num_or_sections), {"num": 0, "sections": [int(n) for n in num_or_sections]}
    if count < 1:
        raise OpValueError("split needs at least one part.", expected="> 0", received=num_or_sections)
    outs = [helper.create_tmp_variable(input.dtype) for _ in range(count)]
    helper.append_op(type="split", inputs={"X": [input]}, outputs={"Out": outs}, attrs={**attrs, "axis": dim})
    return outs


@naming.layer
def slice(input: Variable, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Variable:
    """A block of a tensor: ``input[start:end]`` along some axes.

    Args:
        input: at least one axis.
        axes: the axes that are cut.
        starts: the first element along each, from the end when negative.
        ends: the element after the last one along each, from the end when negative; beyond the end means the end.

    Returns:
        The block.

    Raises:
        OpValueError: the lists have different lengths, or nothing would be left.

    Example:
        >>> fluid.layers.slice(fluid.layers.data("x", [6, 4]), axes=[1, 2], starts=[1, 0], ends=[-1, 2]).shape
        (-1, 4, 2)
    """
    attrs = {"axes": list(axes), "starts": list(starts), "ends": list(ends)}
    return one_op("slice", {"Input": input}, attrs)


@naming.layer
def crop(
    x: Variable,
    shape: Sequence[int] | Variable | None = None,
    offsets: Sequence[int] | Variable | None = None,
    name: str | None = None,
) -> Variable:
    """A block of a tensor, by its shape and where it begins.

    Args:
        x: any shape.
        shape: its sizes, -1 for those of ``x``; or a variable of its shape.
        offsets: where it begins; a list, an int32 variable, or None for the first corner.
        name: name of the layer.

    Returns:
        The block.

    Raises:
        OpValueError: there is no shape, or the block is not inside ``x``.

    Example:
        >>> fluid.layers.crop(fluid.layers.data("x", [6, 4]), shape=[-1, 2, 2], offsets=[0, 1, 1]).shape
        (-1, 2, 2)
    """
    if shape is None:
        raise OpValueError("The shape should be a list, tuple or Variable.", expected="shape=[...]", received="None")
    inputs: dict[str, Variable | list[Variable]] = {"X": x}
    attrs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        inputs["Y"] = shape
    else:
        attrs["shape"] = list(shape)
    if isinstance(offsets, Variable):
        inputs["Offsets"] = offsets
    else:
        attrs["offsets"] = list(offsets) if offsets is not None else [0] * len(x.shape)
    return one_op("crop", inputs, attrs, name=name)


@naming.layer
def stack(x: Variable | list[Variable] | tuple[Variable, ...], axis: int = 0) -> Variable:
    """Tensors of one shape along a new axis.

    Args:
        x: one or several tensors.
        axis: where the new axis is, from the end when negative.

    Returns:
        One axis more than each of them.

    Raises:
        OpValueError: their shapes differ.

    Example:
        >>> a, b = fluid.layers.data("a", [3]), fluid.layers.data("b", [3])
        >>> fluid.layers.stack([a, b], axis=1).shape
        (-1, 2, 3)
    """
    return one_op("stack", {"X": list(x) if isinstance(x, list | tuple) else [x]}, {"axis": axis}, slot="Y")


@naming.layer
def unstack(x: Variable, axis: int = 0, num: Count | None = None) -> list[Variable]:
    """The layers of a tensor along an axis.

    Args:
        x: at least one axis.
        axis: the axis, from the end when negative.
        num: how many there are; by default the size along the axis, which must then be known.

    Returns:
        The layers, one axis less than ``x``.

    Raises:
        OpValueError: the size is not known, or is another than ``num``.

    Example:
        >>> [y.shape for y in fluid.layers.unstack(fluid.layers.data("x", [2, 3]), axis=1)]
        [(-1, 3), (-1, 3)]
    """
    if num is None:
        num = x.shape[axis] if -len(x.shape) <= axis < len(x.shape) else 0
        if num <= 0:
            raise OpValueError(
                f"unstack needs to know the size of {x.name} along axis {axis}.", expected="a known size, or num=",
                received=list(x.shape),
            )  # fmt: skip
    helper = LayerHelper("unstack")
    outs = [helper.create_tmp_variable(x.dtype) for _ in range(num)]
    helper.append_op(type="unstack", inputs={"X": [x]}, outputs={"Y": outs}, attrs={"axis": axis, "num": num})
    return outs


@naming.layer
def expand(x: Variable, expand_times: Sequence[int | Variable], name: str | None = None) -> Variable:
    """A tensor repeated along its axes.

    Args:
        x: any shape.
        expand_times: how often along each axis: numbers, or int32 variables of shape [1] among them.
        name: name of the layer.

    Returns:
        A tensor that is ``expand_times[i]`` times as long along each axis i.

    Raises:
        OpValueError: there is not one number for each axis.

    Example:
        >>> fluid.layers.expand(fluid.layers.data("x", [3]), expand_times=[1, 2]).shape
        (-1, 6)
    """
    inputs: dict[str, Variable | list[Variable]] = {"X": x}
    if any(isinstance(n, Variable) for n in expand_times):
        inputs["expand_times_tensor"] = [
            n if isinstance(n, Variable) else fill_constant([1], "int32", n, force_cpu=True) for n in expand_times
        ]
        return one_op("expand", inputs, name=name)
    return one_op("expand", inputs, {"expand_times": list(expand_times)}, name=name)


@naming.layer
def pad(x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None) -> Variable:
    """A tensor with a border.

    Args:
        x: any shape.
        paddings: how much before and after each axis: ``[before 0, after 0, before 1, after 1, …]``.
        pad_value: what the border holds.
        name: name of the layer.

    Returns:
        The larger tensor.

    Raises:
        OpValueError: there are not two numbers for each axis.

    Example:
        >>> fluid.layers.pad(fluid.layers.data("x", [3]), paddings=[0, 0, 1, 2]).shape
        (-1, 6)
    """
    return one_op("pad", {"X": x}, {"paddings": list(paddings), "pad_value": float(pad_value)}, name=name)


@naming.layer
def pad_constant_like(x: Variable, y: Variable, pad_value: float = 0.0, name: str | None = None) -> Variable:
    """A tensor filled up to the shape of another.

    Args:
        x: says the shape.
        y: what is filled up, no larger along any axis.
        pad_value: what is put after its elements.
        name: name of the layer.

    Returns:
        Shape of ``x``, dtype of ``y``.

    Raises:
        OpValueError: ``y`` is larger.

    Example:
        >>> x, y = fluid.layers.data("x", [6]), fluid.layers.data("y", [4])
        >>> fluid.layers.pad_constant_like(x, y).shape
        (-1, 6)
    """
    return one_op("pad_constant_like", {"X": x, "Y": y}, {"pad_value": float(pad_value)}, dtype=y.dtype, name=name)


@naming.layer
def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """Rows of a tensor by their numbers.

    Args:
        input: at least one axis.
        index: int32 or int64 [n] or [n, 1]: which rows; one may come several times.
        overwrite: kept for old scripts; gradients of a row that is taken twice always add up.

    Returns:
        The rows, in the order of ``index``.

    Raises:
        OpValueError: the index is no list of whole numbers.

    Example:
        >>> x, index = fluid.layers.data("x", [3]), fluid.layers.data("i", [1], dtype="int64")
        >>> fluid.layers.gather(x, index).shape
        (-1, 3)
    """
    return one_op("gather", {"X": input, "Index": index}, {"overwrite": bool(overwrite)})


@naming.layer
@takes(index="scatter.Ids")
def scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None, overwrite: bool = True
) -> Variable:
    """A tensor with some rows replaced.

    Args:
        input: at least one axis.
        index: int32 or int64 [n] or [n, 1]: which rows.
        updates: [n, …]: what they become.
        name: name of the layer.
        overwrite: whether a row becomes its last update; else it becomes the sum of all its updates.

    Returns:
        Shape of ``input``.

    Raises:
        OpValueError: there is not one update for each number.

    Example:
        >>> x, rows = fluid.layers.data("x", [3]), fluid.layers.data("rows", [3])
        >>> fluid.layers.scatter(x, fluid.layers.data("i", [1], dtype="int64"), rows).shape
        (-1, 3)
    """
    inputs = {"X": input, "Ids": index, "Updates": updates}
    return one_op("scatter", inputs, {"overwrite": bool(overwrite)}, name=name)


@naming.layer
@takes(index="multiplex.Ids")
def multiplex(inputs: list[Variable] | tuple[Variable, ...], index: Variable) -> Variable:
    """Each row taken from one of several tensors.

    Args:
        inputs: at least two tensors of one shape.
        index: int32 [N, 1]: which tensor each row is taken from.

    Returns:
        Shape of each of them.

    Raises:
        OpValueError: there are fewer than two, or their shapes differ.

    Example:
        >>> a, b = fluid.layers.data("a", [3]), fluid.layers.data("b", [3])
        >>> fluid.layers.multiplex([a, b], fluid.layers.data("i", [1], dtype="int32")).shape
        (-1, 3)
    """
    if len(inputs) < 2:
        raise OpValueError(
            "inputs should be a list object and contains at least 2 elements.",
            expected="at least two Variables", received=repr(inputs),
        )  # fmt: skip
    return one_op("multiplex", {"X": list(inputs), "Ids": index})


@naming.layer
def reverse(x: Variable, axis: int | Sequence[int]) -> Variable:
    """Axes in reverse order.

    Args:
        x: at least one axis.
        axis: the axis or axes, from the end when negative.

    Returns:
        Shape of ``x``.

    Example:
        >>> fluid.layers.reverse(fluid.layers.data("x", [3]), axis=1).shape
        (-1, 3)
    """
    return one_op("reverse", {"X": x}, {"axis": [axis] if isinstance(axis, int) else list(axis)})
