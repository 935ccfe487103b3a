"""Operations on two variables, element by element.

``y`` has the shape of ``x``, or that of consecutive axes of it: ``axis`` says at which axis of ``x`` they start,
-1 means that they are the last ones. Sizes of 1 at the end of ``y`` count as missing.
"""

from __future__ import annotations

from typing import Any

from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming


@naming.layer
def elementwise_add(x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None) -> Variable:
    """Sum ``x + y``.

    Args:
        x: any shape.
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.elementwise_add(x, y).shape
        (-1, 2, 3)
    """
    return one_op("elementwise_add", {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)


@naming.layer
def elementwise_sub(x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None) -> Variable:
    """Difference ``x - y``.

    Args:
        x: any shape.
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.elementwise_sub(x, y).shape
        (-1, 2, 3)
    """
    return one_op("elementwise_sub", {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)


@naming.layer
def elementwise_mul(x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None) -> Variable:
    """Product ``x · y``.

    Args:
        x: any shape.
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.elementwise_mul(x, y).shape
        (-1, 2, 3)
    """
    return one_op("elementwise_mul", {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)


@naming.layer
def elementwise_div(x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None) -> Variable:
    """Quotient ``x / y``; integers are divided towards zero.

    Args:
        x: any shape.
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.elementwise_div(x, y).shape
        (-1, 2, 3)
    """
    return one_op("elementwise_div", {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)


@naming.layer
def elementwise_max(x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None) -> Variable:
    """Greater of ``x`` and ``y``; where they are equal the gradient goes to ``y``.

    Args:
        x: any shape.
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.elementwise_max(x, y).shape
        (-1, 2, 3)
    """
    return one_op("elementwise_max", {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)


@naming.layer
def elementwise_min(x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None) -> Variable:
    """Smaller of ``x`` and ``y``; where they are equal the gradient goes to ``y``.

    Args:
        x: any shape.
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.elementwise_min(x, y).shape
        (-1, 2, 3)
    """
    return one_op("elementwise_min", {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)


@naming.layer
def elementwise_pow(x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None) -> Variable:
    """Power ``x ** y``.

    Args:
        x: any shape.
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.elementwise_pow(x, y).shape
        (-1, 2, 3)
    """
    return one_op("elementwise_pow", {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)


@naming.layer
def elementwise_mod(x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None) -> Variable:
    """Elementwise remainder of ``x / y``, with the sign of ``y``; no gradient passes.

    Args:
        x: any shape.
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.elementwise_mod(x, y).shape
        (-1, 2, 3)
    """
    return one_op("elementwise_mod", {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)


@naming.layer
def elementwise_floordiv(
    x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None
) -> Variable:
    """Quotient ``x / y`` rounded down; no gradient passes.

    Args:
        x: any shape.
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.elementwise_floordiv(x, y).shape
        (-1, 2, 3)
    """
    return one_op("elementwise_floordiv", {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)
