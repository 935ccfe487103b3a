"""Fluid's broadcast: Y is a slice of X from dimension ``axis`` on; with axis -1 both align at the last dimension."""

from __future__ import annotations

from typing import Any

from fluidnb.op import Attr, Binder, Context, broadcast_dim

Shape = tuple[int, ...]

#: The attribute that every operator on two tensors has.
AXIS = Attr("int", -1, "dimension of X at which Y begins; -1 aligns them at the last one", ge=-1)


def aligned(x: Shape, y: Shape, axis: int) -> tuple[Shape, Shape]:
    """Two shapes filled up with 1 to as many dimensions; of unequal lengths where they do not fit."""
    if len(y) > len(x):
        return aligned(y, x, axis)[::-1]
    start = len(x) - len(y) if axis == -1 else axis
    while y and y[-1] == 1 and start + len(y) > len(x):
        y = y[:-1]
    return x, (1,) * start + y + (1,) * (len(x) - start - len(y))


def _axis_hint(x: Shape, y: Shape) -> str:
    """The axis of X at which Y fits, or what Y would have to be."""
    starts = range(max(len(x) - len(y), 0) + 1)
    fitting = [k for k in starts if all(m in (1, n) for n, m in zip(x[k:], y, strict=False)) and len(y) <= len(x)]
    if fitting:
        return f"axis={fitting[0]} begins with dimension {fitting[0]} of X."
    return f"Y has to end in the sizes of X, {list(x[-len(y) :])} for example; layers.reshape or layers.slice makes it."


def joined(c: Context) -> tuple[Shape, Shape, Shape]:
    """The aligned shapes of X and Y, and the shape of what comes of them."""
    x, y = aligned(c["X"].shape, c["Y"].shape, c.attr("axis", -1))
    out = tuple(broadcast_dim(i, j) for i, j in zip(x, y, strict=False))
    if len(x) != len(y) or -2 in out:
        c.fail(
            f"Broadcast dimension mismatch: the operands of {c.definition.type} do not fit.",
            expected=f"Y broadcastable to X {list(c['X'].shape)} from dimension {c.attr('axis', -1)} on",
            received=f"Y {list(c['Y'].shape)}",
            hint=_axis_hint(c["X"].shape, c["Y"].shape),
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
    """X and Y as views that numpy broadcasts."""
    x, y, _ = joined(b)
    return b["X"].reshape(x), b["Y"].reshape(y)


def summed(shape: Shape, out: Shape) -> tuple[int, ...]:
    """The axes along which an operand was repeated, over which its gradient is summed."""
    return tuple(i for i, (n, m) in enumerate(zip(shape, out, strict=True)) if n == 1 != m)
