"""Gradients of the gradients of sums, differences and products of two tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder, aliases, grad_op
from fluidnb_kernels.elementwise.broadcast import aligned, joined, operands, summed
from fluidnb_kernels.emit import made, zeros

Array = Any


def _seen(b: Binder, slot: str) -> Array | None:
    """An operand's gradient with the dimensions of DOut; None where there is none."""
    value, whole = b[slot], b["DOut"].shape
    if value is None or value.ndim == len(whole):
        return value
    return value.reshape(aligned(whole, value.shape, b.attr("axis", -1))[1])


def _joined(b: Binder, ddx: Array | None, ddy: Array | None, join: np.ufunc) -> None:
    """Emit DDOut from the two gradients that arrive, of which one may count as 0."""
    out = b["DDOut"]
    if ddx is not None and ddy is not None:
        b(join, ddx, ddy, out=out)
    elif ddx is not None:
        b(np.copyto, out, ddx)
    elif ddy is not None:
        b(join, b.const(0, out.dtype), ddy, out=out)
    else:
        zeros(b, out)


def _define(name: str, join: np.ufunc, sign: str) -> None:
    def kernel(b: Binder) -> None:
        _joined(b, _seen(b, "DDX"), _seen(b, "DDY"), join)

    kernel.__doc__ = f"DDOut = DDX {sign} DDY."
    grad_op(f"elementwise_{name}_grad_grad", infer=aliases({"DDOut": "DOut"}), dtype_slot="DOut")(kernel)


_define("add", np.add, "+")
_define("sub", np.subtract, "-")


@grad_op(
    "elementwise_mul_grad_grad",
    infer=aliases({"DDOut": "DOut", "X@GRAD": "X", "Y@GRAD": "Y"}),
    dtype_slot="DOut",
)
def elementwise_mul_grad_grad(b: Binder) -> None:
    """DDOut = DDX · Y + X · DDY; dX = DOut · DDY and dY = DOut · DDX, summed where an operand was repeated."""
    sx, sy, so = joined(b)
    x, y = operands(b)
    g, ddx, ddy = b["DOut"], _seen(b, "DDX"), _seen(b, "DDY")
    if b.wants("DDOut"):
        first = None if ddx is None else made(b, np.multiply, ddx, y)
        second = None if ddy is None else made(b, np.multiply, x, ddy)
        _joined(b, first, second, np.add)
    for slot, other, shape in (("X@GRAD", ddy, sx), ("Y@GRAD", ddx, sy)):
        if not b.wants(slot):
            continue
        to, axes = b[slot].reshape(shape), summed(shape, so)
        if other is None:
            zeros(b, to)
        elif axes:
            b(np.add.reduce, made(b, np.multiply, g, other), axes, None, to, True)
        else:
            b(np.multiply, g, other, out=to)
