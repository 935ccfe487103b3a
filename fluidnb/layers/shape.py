"""Layers that rearrange, cut, join, search and pick elements, and return shapes."""

from collections.abc import Sequence
from typing import Any

from fluidnb.arguments import MOST, Count
from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.creation import fill_constant
from fluidnb.layers.one_op import Inputs, as_attr, as_input, family, one_op, several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "argmax", "argmin", "argsort", "concat", "crop", "expand", "flatten", "gather", "multiplex", "one_hot", "pad",
    "pad_constant_like", "rank", "reshape", "reverse", "scatter", "shape", "slice", "split", "squeeze", "stack",
    "transpose", "unsqueeze", "unstack", "where",
]  # fmt: skip


@naming.layer
@takes(actual_shape="int32")
def reshape(
    x: Variable, shape: Sequence[int], actual_shape: Variable | None = None, act: Any = None, inplace: bool = False,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """Same elements in another shape.

    Args:
        shape: the sizes; 0 copies the size of ``x`` at that axis, one -1 is inferred.
        actual_shape: int32 variable that replaces ``shape`` when the program runs.
        inplace: kept for old scripts: the result is a new variable that shares the memory of ``x`` if it can.

    Returns:
        The elements of ``x`` in the new shape.

    Raises:
        OpValueError: two sizes are unknown, or the number of elements differs.

    Example:
        >>> fluid.layers.reshape(fluid.layers.data("x", [2, 6]), [-1, 4, 3]).shape
        (-1, 4, 3)
    """
    return one_op("reshape", {"X": x, "Shape": actual_shape}, {"shape": list(shape)}, name=name, act=act)


@naming.layer
def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """Axes in another order.

    Args:
        perm: a permutation of the axes: axis ``i`` of the result is axis ``perm[i]`` of ``x``.

    Returns:
        ``x`` with its axes permuted.

    Example:
        >>> fluid.layers.transpose(fluid.layers.data("x", [2, 3]), [0, 2, 1]).shape
        (-1, 3, 2)
    """
    return one_op("transpose", {"X": x}, {"axis": list(perm)}, name=name)


@naming.layer
def concat(input: Variable | Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Several variables joined along an axis.

    Args:
        input: variables that agree in all other sizes.

    Returns:
        The joined variable.

    Example:
        >>> x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [5])
        >>> fluid.layers.concat([x, y], axis=1).shape
        (-1, 8)
    """
    inputs: Inputs = {"X": [input] if isinstance(input, Variable) else list(input)}
    return one_op("concat", inputs, {"axis": axis}, name=name)


def _with_shape(op_type: str, x: Variable, attrs: dict[str, Any], name: str | None) -> Variable:
    """A layer that keeps the shape of its input for the gradient."""
    outputs = {"Out": x.dtype, "XShape": x.dtype}
    return several(op_type, {"X": x}, outputs, attrs, name=name, constant=("XShape",))[0]


@naming.layer
def squeeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """A tensor without axes of size 1.

    Args:
        input: any shape.
        axes: which of them go, from the end when negative; none means all.

    Returns:
        The same elements.

    Example:
        >>> fluid.layers.squeeze(fluid.layers.data("x", [1, 3, 1]), axes=[1, 3]).shape
        (-1, 3)
    """
    return _with_shape("squeeze2", input, {"axes": list(axes)}, name)


@naming.layer
def unsqueeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """A tensor with new axes of size 1.

    Args:
        input: any shape.
        axes: where the new axes are, one after another.

    Returns:
        The same elements.

    Example:
        >>> fluid.layers.unsqueeze(fluid.layers.data("x", [3]), axes=[1]).shape
        (-1, 1, 3)
    """
    return _with_shape("unsqueeze2", input, {"axes": list(axes)}, name)


@naming.layer
def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """A tensor as a matrix.

    Args:
        axis: how many axes make its height; the others make its width.

    Returns:
        The same elements.

    Example:
        >>> fluid.layers.flatten(fluid.layers.data("x", [3, 8, 8]), axis=1).shape
        (-1, 192)
    """
    return _with_shape("flatten2", x, {"axis": axis}, name)


@naming.layer
def shape(input: Variable) -> Variable:
    """The sizes of a tensor, as the program runs.

    Args:
        input: any shape.

    Returns:
        Int32 [rank].

    Example:
        >>> fluid.layers.shape(fluid.layers.data("x", [3])).shape
        (2,)
    """
    return one_op("shape", {"Input": input}, dtype="int32", stop_gradient=True)


@naming.layer
def rank(input: Variable) -> Variable:
    """The number of axes of a tensor.

    Args:
        input: any shape.

    Returns:
        Int32 [1].

    Example:
        >>> fluid.layers.rank(fluid.layers.data("x", [3])).op.attr("value")
        2.0
    """
    return fill_constant([1], "int32", len(input.shape))


@naming.layer
def split(
    input: Variable, num_or_sections: Count | Sequence[int], dim: int = -1, name: str | None = None
) -> list[Variable]:
    """A tensor cut into parts along an axis.

    Args:
        input: at least one axis.
        num_or_sections: how many parts of equal size, or the size of each; one may be -1, which takes what is left.
        dim: the axis, from the end when negative.

    Returns:
        The parts, in order.

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
        OpValueError: nothing would be left.

    Example:
        >>> fluid.layers.slice(fluid.layers.data("x", [6, 4]), axes=[1, 2], starts=[1, 0], ends=[-1, 2]).shape
        (-1, 4, 2)
    """
    attrs = {"axes": list(axes), "starts": list(starts), "ends": list(ends)}
    return one_op("slice", {"Input": input}, attrs)


@naming.layer
def crop(
    x: Variable, shape: Sequence[int] | Variable | None = None, offsets: Sequence[int] | Variable | None = None,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """A block of a tensor, by its shape and where it begins.

    Args:
        shape: its sizes, -1 for those of ``x``; or a variable of its shape.
        offsets: where it begins; a list, an int32 variable, or None for the first corner.

    Returns:
        The block.

    Example:
        >>> fluid.layers.crop(fluid.layers.data("x", [6, 4]), shape=[-1, 2, 2], offsets=[0, 1, 1]).shape
        (-1, 2, 2)
    """
    if shape is None:
        raise OpValueError("The shape should be a list, tuple or Variable.", expected="shape=[...]", received="None")
    corner = [0] * len(x.shape) if offsets is None else offsets
    inputs = {"X": x, "Y": as_input(shape), "Offsets": as_input(corner)}
    return one_op("crop", inputs, {"shape": as_attr(shape), "offsets": as_attr(corner)}, name=name)


@naming.layer
def stack(x: Variable | list[Variable] | tuple[Variable, ...], axis: int = 0) -> Variable:
    """Tensors of one shape along a new axis.

    Args:
        x: one or several tensors.
        axis: where the new axis is, from the end when negative.

    Returns:
        One axis more than each of them.

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
        num: how many there are; by default the size along the axis, which must then be known.

    Returns:
        The layers, one axis less than ``x``.

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
        if num > MOST:
            raise OpValueError(
                f"{x.name} is too long along axis {axis} for a variable for each layer.", expected=f"up to {MOST:,}",
                received=num, hint="layers.slice and layers.split take parts of a tensor.",
            )  # fmt: skip
    helper = LayerHelper("unstack")
    outs = [helper.create_tmp_variable(x.dtype) for _ in range(num)]
    helper.append_op(type="unstack", inputs={"X": [x]}, outputs={"Y": outs}, attrs={"axis": axis, "num": num})
    return outs


@naming.layer
def expand(x: Variable, expand_times: Sequence[int | Variable], name: str | None = None) -> Variable:
    """A tensor repeated along its axes.

    Args:
        expand_times: how often along each axis: numbers, or int32 variables of shape [1] among them.

    Returns:
        A tensor that is ``expand_times[i]`` times as long along each axis i.

    Example:
        >>> fluid.layers.expand(fluid.layers.data("x", [3]), expand_times=[1, 2]).shape
        (-1, 6)
    """
    if not any(isinstance(n, Variable) for n in expand_times):
        return one_op("expand", {"X": x}, {"expand_times": list(expand_times)}, name=name)
    times = [n if isinstance(n, Variable) else fill_constant([1], "int32", n, force_cpu=True) for n in expand_times]
    return one_op("expand", {"X": x, "expand_times_tensor": times}, name=name)


@naming.layer
def pad(x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None) -> Variable:
    """A tensor with a border.

    Args:
        paddings: how much before and after each axis: ``[before 0, after 0, before 1, after 1, …]``.
        pad_value: what the border holds.

    Returns:
        The larger tensor.

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

    Returns:
        Shape of ``x``, dtype of ``y``.

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
        overwrite: whether a row becomes its last update; else it becomes the sum of all its updates.

    Returns:
        Shape of ``input``.

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


@family
def _arg(op_type: str, x: Variable, axis: int = 0) -> Variable:
    """Index of the {summary} element along an axis; the first of equal ones.

    Args:
        x: at least one axis.

    Returns:
        Int64, without that axis; no gradient passes.

    Example:
        >>> fluid.layers.{name}(fluid.layers.data("x", [3]), axis=1).shape
        (-1,)
    """
    return one_op(op_type, {"X": x}, {"axis": axis}, dtype="int64", stop_gradient=True)


argmax = _arg("arg_max", "largest", name="argmax")
argmin = _arg("arg_min", "smallest", name="argmin")


@naming.layer
def argsort(input: Variable, axis: int = -1, name: str | None = None) -> tuple[Variable, Variable]:
    """Elements in rising order along an axis, and where they were.

    Args:
        input: at least one axis.

    Returns:
        (sorted elements, int64 indices), both of the shape of ``input``.

    Example:
        >>> values, indices = fluid.layers.argsort(fluid.layers.data("x", [3]), axis=1)
        >>> values.shape, indices.shape
        ((-1, 3), (-1, 3))
    """
    outputs: dict[str, Any] = {"Out": input.dtype, "Indices": "int64"}
    out, indices = several("argsort", {"X": input}, outputs, {"axis": axis}, name=name, constant=("Indices",))
    return out, indices


@naming.layer
def where(condition: Variable) -> Variable:
    """Indices of the true elements of a condition.

    Args:
        condition: bool, any shape.

    Returns:
        Int64 [number of places, rank], as many as there are when the program runs; no gradient passes.

    Example:
        >>> fluid.layers.where(fluid.layers.data("c", [3], dtype="bool")).shape
        (-1, 2)
    """
    return one_op("where", {"Condition": condition}, dtype="int64", stop_gradient=True)


@naming.layer
def one_hot(input: Variable, depth: int | Variable) -> Variable:
    """Whole numbers as rows with a single 1.

    Args:
        input: int32 or int64 […, 1].
        depth: length of a row; a number, or an int32 variable of shape [1].

    Returns:
        Float32 […, depth]; no gradient passes.

    Raises:
        OpValueError: the last axis of the input has another size than 1.

    Example:
        >>> fluid.layers.one_hot(fluid.layers.data("label", [1], dtype="int64"), depth=10).shape
        (-1, 10)
    """
    if isinstance(depth, Variable):
        return one_op("one_hot", {"X": input, "depth_tensor": depth}, dtype="float32", stop_gradient=True)
    return one_op("one_hot", {"X": input}, {"depth": depth}, dtype="float32", stop_gradient=True)
