"""Comparisons: bool variables, for masks and for the conditions of loops and branches."""

from __future__ import annotations

from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming


@naming.layer
def less_than(x: Variable, y: Variable, force_cpu: bool | None = None, cond: Variable | None = None) -> Variable:
    """Whether ``x < y``, element by element.

    Args:
        x: any shape.
        y: shape of ``x``.
        force_cpu: whether the result stays on the CPU, where loops and branches read it.
        cond: an existing bool variable to write; None makes one.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> i, n = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 3)
        >>> fluid.layers.less_than(i, n).shape
        (1,)
    """
    return one_op(
        "less_than", {"X": x, "Y": y}, {"force_cpu": bool(force_cpu)}, dtype="bool", out=cond, stop_gradient=True
    )


@naming.layer
def less_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Whether ``x <= y``, element by element.

    Args:
        x: any shape.
        y: shape of ``x``.
        cond: an existing bool variable to write; None makes one.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = fluid.layers.ones([1], "int64"), fluid.layers.ones([1], "int64")
        >>> fluid.layers.less_equal(a, b).shape
        (1,)
    """
    return one_op("less_equal", {"X": x, "Y": y}, dtype="bool", out=cond, stop_gradient=True)


@naming.layer
def greater_than(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Whether ``x > y``, element by element.

    Args:
        x: any shape.
        y: shape of ``x``.
        cond: an existing bool variable to write; None makes one.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = fluid.layers.ones([1], "int64"), fluid.layers.ones([1], "int64")
        >>> fluid.layers.greater_than(a, b).shape
        (1,)
    """
    return one_op("greater_than", {"X": x, "Y": y}, dtype="bool", out=cond, stop_gradient=True)


@naming.layer
def equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Whether ``x == y``, element by element.

    Args:
        x: any shape.
        y: shape of ``x``.
        cond: an existing bool variable to write; None makes one.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = fluid.layers.ones([1], "int64"), fluid.layers.ones([1], "int64")
        >>> fluid.layers.equal(a, b).shape
        (1,)
    """
    return one_op("equal", {"X": x, "Y": y}, dtype="bool", out=cond, stop_gradient=True)
