"""Layers that look for elements: the largest, the order, those for which something holds."""

from __future__ import annotations

from typing import Any

from fluidnb.layers.one_op import one_op
from fluidnb.layers.several import several
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["argmax", "argmin", "argsort", "one_hot", "where"]


@naming.layer
def argmax(x: Variable, axis: int = 0) -> Variable:
    """Index of the largest element along an axis; the first of equal ones.

    Args:
        x: at least one axis.
        axis: the axis, from the end when negative.

    Returns:
        Int64, without that axis; no gradient passes.

    Example:
        >>> fluid.layers.argmax(fluid.layers.data("x", [3]), axis=1).shape
        (-1,)
    """
    return one_op("arg_max", {"X": x}, {"axis": axis}, dtype="int64", stop_gradient=True)


@naming.layer
def argmin(x: Variable, axis: int = 0) -> Variable:
    """Index of the smallest element along an axis; the first of equal ones.

    Args:
        x: at least one axis.
        axis: the axis, from the end when negative.

    Returns:
        Int64, without that axis; no gradient passes.

    Example:
        >>> fluid.layers.argmin(fluid.layers.data("x", [3]), axis=1).shape
        (-1,)
    """
    return one_op("arg_min", {"X": x}, {"axis": axis}, dtype="int64", stop_gradient=True)


@naming.layer
def argsort(input: Variable, axis: int = -1, name: str | None = None) -> tuple[Variable, Variable]:
    """Elements in rising order along an axis, and where they were.

    Args:
        input: at least one axis.
        axis: the axis, from the end when negative.
        name: name of the layer.

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
