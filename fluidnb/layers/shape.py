"""Layers that rearrange elements, change axes, and return shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.layers.creation import fill_constant
from fluidnb.layers.one_op import Inputs, check_variable, one_op
from fluidnb.layers.several import several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming


@naming.layer
@takes(actual_shape="int32")
def reshape(
    x: Variable,
    shape: Sequence[int],
    actual_shape: Variable | None = None,
    act: Any = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
    """Same elements in another shape.

    Args:
        x: any shape.
        shape: the sizes; 0 copies the size of ``x`` at that axis, one -1 is inferred.
        actual_shape: int32 variable that replaces ``shape`` when the program runs.
        act: activation of the result.
        inplace: kept for old scripts: the result is a new variable that shares the memory of ``x`` if it can.
        name: name of the layer.

    Returns:
        The elements of ``x`` in the new shape.

    Raises:
        OpValueError: two sizes are unknown, or the number of elements differs.

    Example:
        >>> fluid.layers.reshape(fluid.layers.data("x", [2, 6]), [-1, 4, 3]).shape
        (-1, 4, 3)
    """
    inputs: dict[str, Variable | list[Variable]] = {"X": x}
    if actual_shape is not None:
        inputs["Shape"] = actual_shape
    return one_op("reshape", inputs, {"shape": list(shape)}, name=name, act=act)


@naming.layer
def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """Axes in another order.

    Args:
        x: any shape.
        perm: a permutation of the axes: axis ``i`` of the result is axis ``perm[i]`` of ``x``.
        name: name of the layer.

    Returns:
        ``x`` with its axes permuted.

    Raises:
        OpValueError: ``perm`` is not a permutation of the axes.

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
        axis: the axis, from the end when negative.
        name: name of the layer.

    Returns:
        The joined variable.

    Raises:
        OpValueError: the other sizes differ.

    Example:
        >>> x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [5])
        >>> fluid.layers.concat([x, y], axis=1).shape
        (-1, 8)
    """
    inputs: Inputs = {"X": [input] if isinstance(input, Variable) else list(input)}
    return one_op("concat", inputs, {"axis": axis}, name=name)


def _with_shape(op_type: str, x: Variable, attrs: dict[str, Any], name: str | None) -> Variable:
    """A layer that keeps the shape of its input for the gradient."""
    check_variable(x, "input", op_type)
    outputs = {"Out": x.dtype, "XShape": x.dtype}
    return several(op_type, {"X": x}, outputs, attrs, name=name, constant=("XShape",))[0]


@naming.layer
def squeeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """A tensor without axes of size 1.

    Args:
        input: any shape.
        axes: which of them go, from the end when negative; none means all.
        name: name of the layer.

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
        name: name of the layer.

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
        x: any shape.
        axis: how many axes make its height; the others make its width.
        name: name of the layer.

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
