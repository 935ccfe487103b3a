"""Products, sums and scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming


@naming.layer
def mul(
    x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None
) -> Variable:
    """Matrix product of ``x`` and ``y``, each flattened to two axes.

    Args:
        x: at least two axes; the first ``x_num_col_dims`` are its rows.
        y: at least two axes; the first ``y_num_col_dims`` are its rows, as many as ``x`` has columns.
        x_num_col_dims: leading axes of ``x`` that stay.
        y_num_col_dims: leading axes of ``y`` that are summed over.
        name: name of the result.

    Returns:
        The leading axes of ``x`` followed by the trailing axes of ``y``, with the LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [4, 3]), fluid.layers.data("y", [12, 5], append_batch_size=False)
        >>> fluid.layers.mul(x, y).shape
        (-1, 5)
    """
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return one_op("mul", {"X": x, "Y": y}, attrs, out_name=name)


@naming.layer
def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """Matrix product over the last two axes, with the axes before them broadcast.

    Args:
        x: one axis or more; a vector counts as one row.
        y: one axis or more; a vector counts as one column.
        transpose_x: swap the last two axes of ``x`` first; a vector becomes one column.
        transpose_y: swap the last two axes of ``y`` first; a vector becomes one row.
        alpha: factor on the result.
        name: name of the layer.

    Returns:
        ``alpha · x · y``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [4, 3])
        >>> fluid.layers.matmul(x, y, transpose_y=True).shape
        (-1, 2, 4)
    """
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return one_op("matmul", {"X": x, "Y": y}, attrs, name=name)


@naming.layer
def scale(
    x: Variable,
    scale: float = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: Any = None,
    name: str | None = None,
) -> Variable:
    """Linear function of each element: ``scale · x + bias``, or ``scale · (x + bias)``.

    Args:
        x: any shape.
        scale: the factor.
        bias: the summand.
        bias_after_scale: whether the bias is added after scaling.
        act: activation of the result.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.scale(fluid.layers.data("x", [3]), scale=2.0, bias=1.0).shape
        (-1, 3)
    """
    attrs = {"scale": float(scale), "bias": float(bias), "bias_after_scale": bias_after_scale}
    return one_op("scale", {"X": x}, attrs, out_name=name, act=act)


@naming.layer
def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """Limit each element to [min, max]; the gradient passes where ``min < x < max``.

    Args:
        x: any shape.
        min: lower bound.
        max: upper bound.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Raises:
        OpValueError: max is below min.

    Example:
        >>> fluid.layers.clip(fluid.layers.data("x", [3]), min=-1.0, max=1.0).shape
        (-1, 3)

    Source: developer guide, the operator that it uses as its example.
    """
    return one_op("clip", {"X": x}, {"min": float(min), "max": float(max)}, out_name=name)


@naming.layer
def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """Add a number to a variable of one element; integers stay integers.

    Args:
        x: shape [1].
        value: what is added.
        in_place: whether ``x`` itself changes, or a new variable holds the result.

    Returns:
        ``x``, or the new variable.

    Example:
        >>> i = fluid.layers.zeros([1], "int64")
        >>> fluid.layers.increment(i) is i
        True
    """
    return one_op("increment", {"X": x}, {"step": float(value)}, out=x if in_place else None)


@naming.layer
def sums(input: Variable | Sequence[Variable], out: Variable | None = None) -> Variable:
    """Sum of several variables, element by element.

    Args:
        input: variables of one shape and dtype.
        out: an existing variable to write; None makes one.

    Returns:
        The sum, with the LoD of the first.

    Example:
        >>> x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [3])
        >>> fluid.layers.sums([x, y]).shape
        (-1, 3)
    """
    return one_op("sum", {"X": [input] if isinstance(input, Variable) else list(input)}, out=out)


@naming.layer
def sum(x: Variable | Sequence[Variable]) -> Variable:
    """Sum of several variables, element by element; `sums` without ``out``.

    Args:
        x: variables of one shape and dtype.

    Returns:
        The sum, with the LoD of the first.

    Example:
        >>> x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [3])
        >>> fluid.layers.sum([x, y]).shape
        (-1, 3)
    """
    return sums(x)
