"""Sums, means and other reductions over axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.layers.one_op import one_op
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming


@naming.layer
@takes(x="float")
def mean(x: Variable, name: str | None = None) -> Variable:
    """Mean of all elements.

    Args:
        x: any shape, float.
        name: name of the result.

    Returns:
        Shape [1].

    Example:
        >>> fluid.layers.mean(x=fluid.layers.data("x", [3])).shape
        (1,)
    """
    return one_op("mean", {"X": x}, out_name=name)


@naming.layer
def reduce_sum(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Sum over some axes.

    Args:
        input: any shape.
        dim: the axis or axes, from the end when negative; None for all.
        keep_dim: whether the axes stay, with size 1.
        name: name of the layer.

    Returns:
        The sum; shape [1] when all axes go.

    Example:
        >>> x = fluid.layers.data("x", [2, 3])
        >>> fluid.layers.reduce_sum(x).shape, fluid.layers.reduce_sum(x, dim=[1, 2]).shape
        ((1,), (-1,))
    """
    return one_op("reduce_sum", {"X": input}, _reduction(dim, keep_dim), name=name)


@naming.layer
@takes(input="float")
def reduce_mean(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Mean over some axes.

    Args:
        input: any shape, float.
        dim: the axis or axes, from the end when negative; None for all.
        keep_dim: whether the axes stay, with size 1.
        name: name of the layer.

    Returns:
        The mean; shape [1] when all axes go.

    Example:
        >>> fluid.layers.reduce_mean(fluid.layers.data("x", [2, 3]), dim=-1, keep_dim=True).shape
        (-1, 2, 1)
    """
    return one_op("reduce_mean", {"X": input}, _reduction(dim, keep_dim), name=name)


@naming.layer
def reduce_max(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Largest element over some axes.

    Args:
        input: any shape.
        dim: the axis or axes, from the end when negative; None for all.
        keep_dim: whether the axes stay, with size 1.
        name: name of the layer.

    Returns:
        The largest elements; shape [1] when all axes go.

    Example:
        >>> fluid.layers.reduce_max(fluid.layers.data("x", [2, 3]), dim=1).shape
        (-1, 3)
    """
    return one_op("reduce_max", {"X": input}, _reduction(dim, keep_dim), name=name)


@naming.layer
def reduce_min(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Smallest element over some axes.

    Args:
        input: any shape.
        dim: the axis or axes, from the end when negative; None for all.
        keep_dim: whether the axes stay, with size 1.
        name: name of the layer.

    Returns:
        The smallest elements; shape [1] when all axes go.

    Example:
        >>> fluid.layers.reduce_min(fluid.layers.data("x", [2, 3]), dim=1).shape
        (-1, 3)
    """
    return one_op("reduce_min", {"X": input}, _reduction(dim, keep_dim), name=name)


@naming.layer
def reduce_prod(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Product over some axes.

    Args:
        input: any shape.
        dim: the axis or axes, from the end when negative; None for all.
        keep_dim: whether the axes stay, with size 1.
        name: name of the layer.

    Returns:
        The products; shape [1] when all axes go.

    Example:
        >>> fluid.layers.reduce_prod(fluid.layers.data("x", [2, 3]), dim=1).shape
        (-1, 3)
    """
    return one_op("reduce_prod", {"X": input}, _reduction(dim, keep_dim), name=name)


@naming.layer
def reduce_all(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Whether all elements hold over some axes.

    Args:
        input: bool, any shape.
        dim: the axis or axes, from the end when negative; None for all.
        keep_dim: whether the axes stay, with size 1.
        name: name of the layer.

    Returns:
        Bool; shape [1] when all axes go.

    Example:
        >>> fluid.layers.reduce_all(fluid.layers.data("x", [2, 3], dtype="bool"), dim=1).shape
        (-1, 3)
    """
    return one_op("reduce_all", {"X": input}, _reduction(dim, keep_dim), name=name, dtype="bool", stop_gradient=True)


@naming.layer
def reduce_any(
    input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Whether an element holds over some axes.

    Args:
        input: bool, any shape.
        dim: the axis or axes, from the end when negative; None for all.
        keep_dim: whether the axes stay, with size 1.
        name: name of the layer.

    Returns:
        Bool; shape [1] when all axes go.

    Example:
        >>> fluid.layers.reduce_any(fluid.layers.data("x", [2, 3], dtype="bool"), dim=1).shape
        (-1, 3)
    """
    return one_op("reduce_any", {"X": input}, _reduction(dim, keep_dim), name=name, dtype="bool", stop_gradient=True)


def _reduction(dim: int | Sequence[int] | None, keep_dim: bool) -> dict[str, Any]:
    if dim is None:
        return {"dim": [0], "keep_dim": keep_dim, "reduce_all": True}
    return {"dim": [dim] if isinstance(dim, int) else list(dim), "keep_dim": keep_dim, "reduce_all": False}
