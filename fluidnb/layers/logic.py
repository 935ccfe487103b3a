"""Logic of bool variables, and questions about tensors."""

from __future__ import annotations

from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "greater_equal", "has_inf", "has_nan", "is_empty", "isfinite", "logical_and", "logical_not", "logical_or",
    "logical_xor", "not_equal",
]  # fmt: skip


@naming.layer
def greater_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Whether ``x >= y``, element by element.

    Args:
        x: any shape.
        y: shape of ``x``.
        cond: an existing bool variable to write; None makes one.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = fluid.layers.ones([1], "int64"), fluid.layers.ones([1], "int64")
        >>> fluid.layers.greater_equal(a, b).shape
        (1,)
    """
    return one_op("greater_equal", {"X": x, "Y": y}, dtype="bool", out=cond, stop_gradient=True)


@naming.layer
def not_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Whether ``x != y``, element by element.

    Args:
        x: any shape.
        y: shape of ``x``.
        cond: an existing bool variable to write; None makes one.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = fluid.layers.ones([1], "int64"), fluid.layers.ones([1], "int64")
        >>> fluid.layers.not_equal(a, b).shape
        (1,)
    """
    return one_op("not_equal", {"X": x, "Y": y}, dtype="bool", out=cond, stop_gradient=True)


@naming.layer
def logical_and(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether both hold, element by element.

    Args:
        x: bool, any shape.
        y: bool, shape of ``x``.
        out: an existing bool variable to write; None makes one.
        name: name of the layer.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = (fluid.layers.data(n, [1], dtype="bool") for n in "ab")
        >>> fluid.layers.logical_and(a, b).shape
        (-1, 1)
    """
    return one_op("logical_and", {"X": x, "Y": y}, dtype="bool", out=out, name=name, stop_gradient=True)


@naming.layer
def logical_or(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether one of them holds, or both, element by element.

    Args:
        x: bool, any shape.
        y: bool, shape of ``x``.
        out: an existing bool variable to write; None makes one.
        name: name of the layer.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = (fluid.layers.data(n, [1], dtype="bool") for n in "ab")
        >>> fluid.layers.logical_or(a, b).shape
        (-1, 1)
    """
    return one_op("logical_or", {"X": x, "Y": y}, dtype="bool", out=out, name=name, stop_gradient=True)


@naming.layer
def logical_xor(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether one of them holds, but not both, element by element.

    Args:
        x: bool, any shape.
        y: bool, shape of ``x``.
        out: an existing bool variable to write; None makes one.
        name: name of the layer.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = (fluid.layers.data(n, [1], dtype="bool") for n in "ab")
        >>> fluid.layers.logical_xor(a, b).shape
        (-1, 1)
    """
    return one_op("logical_xor", {"X": x, "Y": y}, dtype="bool", out=out, name=name, stop_gradient=True)


@naming.layer
def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether it does not hold, element by element.

    Args:
        x: bool, any shape.
        out: an existing bool variable to write; None makes one.
        name: name of the layer.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> fluid.layers.logical_not(fluid.layers.data("a", [1], dtype="bool")).shape
        (-1, 1)
    """
    return one_op("logical_not", {"X": x}, dtype="bool", out=out, name=name, stop_gradient=True)


@naming.layer
def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Whether a tensor has no elements.

    Args:
        x: any shape.
        cond: an existing bool variable to write; None makes one.

    Returns:
        Bool [1].

    Example:
        >>> fluid.layers.is_empty(fluid.layers.data("x", [3])).shape
        (1,)
    """
    return one_op("is_empty", {"X": x}, dtype="bool", out=cond, stop_gradient=True)


@naming.layer
def has_inf(x: Variable) -> Variable:
    """Whether an element is infinite.

    Args:
        x: any shape.

    Returns:
        Bool [1].

    Example:
        >>> fluid.layers.has_inf(fluid.layers.data("x", [3])).shape
        (1,)
    """
    return one_op("isinf", {"X": x}, dtype="bool", stop_gradient=True)


@naming.layer
def has_nan(x: Variable) -> Variable:
    """Whether an element is not a number.

    Args:
        x: any shape.

    Returns:
        Bool [1].

    Example:
        >>> fluid.layers.has_nan(fluid.layers.data("x", [3])).shape
        (1,)
    """
    return one_op("isnan", {"X": x}, dtype="bool", stop_gradient=True)


@naming.layer
def isfinite(x: Variable) -> Variable:
    """Whether every element is a finite number.

    Args:
        x: any shape.

    Returns:
        Bool [1].

    Example:
        >>> fluid.layers.isfinite(fluid.layers.data("x", [3])).shape
        (1,)
    """
    return one_op("isfinite", {"X": x}, dtype="bool", stop_gradient=True)
