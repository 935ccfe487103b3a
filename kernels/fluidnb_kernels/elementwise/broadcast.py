"""Fluid's broadcast: Y is a slice of X from dimension ``axis`` on; with axis -1 both align at the last dimension."""

from __future__ import annotations

from typing import Any

from fluidnb.op import Attr, Binder, Context, broadcast_dim

Shape = tuple[int, ...]

#: The attribute that every operator on two tensors has.
AXIS = Attr("int", -1, "dimension of X at which Y begins; -1 aligns them at the last one", ge=-1)


def aligned(x: Shape, y: Shape, axis: int) -> tuple[Shape, Shape]:
    """Two shapes with as many dimensions as the longer one, filled up with 1.

    Args:
        y: shape of Y; ones at its end that do not fit are dropped.
        axis: where the shorter one begins, or -1.

    Returns:
        Both shapes; of unequal lengths where they do not fit.

    Example:
        >>> aligned((2, 3, 4), (3,), 1), aligned((4,), (3, 1), -1)
        (((2, 3, 4), (1, 3, 1)), ((1, 4), (3, 1)))
    """
    if len(y) > len(x):
        return aligned(y, x, axis)[::-1]
    start = len(x) - len(y) if axis == -1 else axis
    while y and y[-1] == 1 and start + len(y) > len(x):
        y = y[:-1]
    return x, (1,) * start + y + (1,) * (len(x) - start - len(y))


def joined(c: Context) -> tuple[Shape, Shape, Shape]:
    """The aligned shapes of X and Y, and the shape of what comes of them.

    Raises:
        RuleError: they do not fit.
    """
    x, y = aligned(c["X"].shape, c["Y"].shape, c.attr("axis", -1))
    out = tuple(broadcast_dim(i, j) for i, j in zip(x, y, strict=False))
    if len(x) != len(y) or -2 in out:
        c.fail(
            f"Broadcast dimension mismatch: the operands of {c.definition.type} do not fit.",
            expected=f"Y broadcastable to X {list(c['X'].shape)} from dimension {c.attr('axis', -1)} on",
            received=f"Y {list(c['Y'].shape)}",
            hint="the attribute axis says at which dimension of X the dimensions of Y begin; -1 means the last ones.",
        )  # fmt: skip
    return x, y, out


def broadcast(c: Context) -> None:
    """Rule: Out has the shape of X and Y together, the dtype and the LoD of X."""
    x, y = c["X"], c["Y"]
    out = joined(c)[2]
    c.require(
        x.dtype == y.dtype,
        f"DataType of Paddle Op {c.definition.type} must be the same. Get ({x.dtype}) != ({y.dtype})",
        expected=f"X and Y of one dtype, for example {x.dtype}", received=f"{x.dtype} and {y.dtype}",
        hint="cast one of them with layers.cast.",
    )  # fmt: skip
    c.set("Out", out, x.dtype, c.lod("X"))


def operands(b: Binder) -> tuple[Any, Any]:
    """X and Y as views that numpy broadcasts.

    Returns:
        Both, with the same number of dimensions.
    """
    x, y, _ = joined(b)
    return b["X"].reshape(x), b["Y"].reshape(y)


def summed(shape: Shape, out: Shape) -> tuple[int, ...]:
    """The axes along which an operand was repeated, over which its gradient is summed.

    Example:
        >>> summed((1, 3, 1), (2, 3, 1))
        (0,)
    """
    return tuple(i for i, (n, m) in enumerate(zip(shape, out, strict=True)) if n == 1 != m)
