"""Layers of lengths and running sums."""

from __future__ import annotations

from fluidnb.layers.one_op import one_op
from fluidnb.layers.several import several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["clip_by_norm", "cos_sim", "cumsum", "l2_normalize"]


@naming.layer
def cos_sim(X: Variable, Y: Variable) -> Variable:
    """The cosine of the angle between rows.

    Args:
        X: [N, width].
        Y: [N, width], or [1, width] for all rows.

    Returns:
        [N, 1], from -1 to 1.

    Raises:
        OpValueError: the shapes do not fit.

    Example:
        >>> x, y = fluid.layers.data("x", [32]), fluid.layers.data("y", [32])
        >>> fluid.layers.cos_sim(x, y).shape
        (-1, 1)
    """
    return several("cos_sim", {"X": X, "Y": Y}, {"Out": X.dtype, "XNorm": X.dtype, "YNorm": X.dtype})[0]


@naming.layer
@takes(x="float")
def l2_normalize(x: Variable, axis: int | None, epsilon: float = 1e-12, name: str | None = None) -> Variable:
    """Vectors made to have length 1.

    Args:
        x: at least one axis.
        axis: the axis of the vectors, from the end when negative; None means 1.
        epsilon: added to the square of the length.
        name: name of the layer.

    Returns:
        Shape of ``x``.

    Example:
        >>> fluid.layers.l2_normalize(fluid.layers.data("x", [32]), axis=1).shape
        (-1, 32)
    """
    axis = 0 if len(x.shape) == 1 else 1 if axis is None else axis
    attrs = {"axis": axis, "epsilon": float(epsilon)}
    return several("norm", {"X": x}, {"Out": x.dtype, "Norm": x.dtype}, attrs, name=name)[0]


@naming.layer
def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """A tensor made shorter where it is longer than allowed: ``x · max_norm / max(max_norm, |x|)``.

    Args:
        x: any shape; its length is the square root of the sum of all squares.
        max_norm: the length allowed, positive.
        name: name of the layer.

    Returns:
        Shape of ``x``; no gradient passes.

    Example:
        >>> fluid.layers.clip_by_norm(fluid.layers.data("x", [3]), max_norm=1.0).shape
        (-1, 3)
    """
    return one_op("clip_by_norm", {"X": x}, {"max_norm": float(max_norm)}, name=name)


@naming.layer
def cumsum(
    x: Variable, axis: int | None = None, exclusive: bool | None = None, reverse: bool | None = None
) -> Variable:
    """Sums of all elements up to each.

    Args:
        x: at least one axis.
        axis: the axis along which is summed; the last one by default.
        exclusive: whether each element is excluded from its sum.
        reverse: whether to sum from the end.

    Returns:
        Shape of ``x``.

    Example:
        >>> fluid.layers.cumsum(fluid.layers.data("x", [3]), axis=1).shape
        (-1, 3)
    """
    given = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    return one_op("cumsum", {"X": x}, {n: v for n, v in given.items() if v is not None})
