"""Gradients of the gradients of sums, differences, products and quotients of two tensors."""

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.op import Array, Binder, aliases, grad_op, kernel
from fluidnb_kernels.elementwise.broadcast import Shape, aligned, joined, operands, summed
from fluidnb_kernels.elementwise.launch import CUDA, binary, slopes
from fluidnb_kernels.emit import FLOATS, apply, zeros
from fluidnb_kernels.formulas import formulas
from fluidnb_kernels.tensor import strided_copy


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


def _joined_on_cuda(b: Binder, ddx: Array | None, ddy: Array | None, name: str) -> None:
    """Emit launches that make DDOut; the gradients may have fewer dimensions than it."""
    out = b["DDOut"]
    so = tuple(out.shape)
    if ddy is None or ddx is None and name == "add":
        only = ddx if ddy is None else ddy
        if only is None:
            strided_copy.fill(b, out)
        else:
            strided_copy.move(b, out, only, of=strided_copy.lay(only, _shape(b, only)))
        return
    if ddx is None:
        ddx = b.tmp((1,), out.dtype)
        strided_copy.fill(b, ddx)
    binary(b, CUDA, f"f::{name}", ddx, ddy, out, (_shape(b, ddx), _shape(b, ddy), so))


def _shape(b: Binder, value: Array) -> Shape:
    """The shape of an operand's gradient with the dimensions of DOut."""
    whole = b["DOut"].shape
    return value.shape if value.ndim == len(whole) else aligned(whole, value.shape, b.attr("axis", -1))[1]


def _define(name: str, join: np.ufunc, sign: str) -> None:
    def on_host(b: Binder) -> None:
        _joined(b, _seen(b, "DDX"), _seen(b, "DDY"), join)

    on_host.__doc__ = f"DDOut = DDX {sign} DDY."
    grad_op(f"elementwise_{name}_grad_grad", infer=aliases({"DDOut": "DOut"}), dtype_slot="DOut")(on_host)

    @kernel(f"elementwise_{name}_grad_grad", place="cuda", dtypes=FLOATS)
    def on_cuda(b: Binder) -> None:
        _joined_on_cuda(b, b["DDX"], b["DDY"], name)


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
        first = None if ddx is None else apply(b, np.multiply, ddx, y)
        second = None if ddy is None else apply(b, np.multiply, x, ddy)
        _joined(b, first, second, np.add)
    for slot, other, shape in (("X@GRAD", ddy, sx), ("Y@GRAD", ddx, sy)):
        if not b.wants(slot):
            continue
        to, axes = b[slot].reshape(shape), summed(shape, so)
        if other is None:
            zeros(b, to)
        elif axes:
            b(np.add.reduce, apply(b, np.multiply, g, other), axes, None, to, True)
        else:
            b(np.multiply, g, other, out=to)


@kernel("elementwise_mul_grad_grad", place="cuda", dtypes=FLOATS)
def mul_grad_grad_on_cuda(b: Binder) -> None:
    x, y, g, ddx, ddy, shapes = b["X"], b["Y"], b["DOut"], b["DDX"], b["DDY"], joined(b)
    if b.wants("DDOut"):
        parts: list[Array | None] = []
        for one, other in ((ddx, y), (x, ddy)):
            part = None if one is None or other is None else b.like(g)
            if part is not None:
                binary(b, CUDA, "f::mul", one, other, part, shapes)
            parts.append(part)
        _joined_on_cuda(b, parts[0], parts[1], "add")
    dx, dy = (b[slot] if b.wants(slot) else None for slot in ("X@GRAD", "Y@GRAD"))
    for target, one, other, side in ((dx, x, ddy, 0), (dy, ddx, y, 1)):
        if target is not None and (one is None or other is None):
            strided_copy.fill(b, target)
        elif target is not None:
            slopes(b, "mul", (one, other, g, g), (None, target) if side else (target, None), shapes)


def _div_grad_grad(b: Binder, on_cuda: bool) -> None:
    whole = tuple(b["Out"].shape)
    f = formulas(b, on_cuda, b["Out"])

    def operand(slot: str) -> Array | None:
        value = b[slot]
        if value is None or value.ndim == len(whole):
            return None if value is None else f.read(value)
        return f.read(value, aligned(whole, value.shape, b.attr("axis", -1))[1])

    y, out, dx, ddx, ddy = (operand(slot) for slot in ("Y", "Out", "DX", "DDX", "DDY"))
    if y is None or out is None:
        raise OpValueError(
            "elementwise_div_grad_grad lacks an input.", expected="Y and Out", received=", ".join(b.inputs),
            hint="the program was changed.",
        )  # fmt: skip
    moved = None if ddy is None else f.mul(out, ddy)
    ddout = f.div(f.sub(f.sum_of([ddx], whole), f.sum_of([moved], whole)), y)
    if dx is None or dx.shape != whole:  # nobody wanted it, or it is a sum already
        dx = f.div(f.read(b["Out@GRAD"]), y)
    dx = f.mul(dx, f.number(-1))
    if b.wants("DDOut"):
        f.write(b["DDOut"], ddout)
    if b.wants("DOut"):
        f.write(b["DOut"], f.zeros(whole) if ddy is None else f.mul(dx, ddy))
    if b.wants("Y@GRAD"):
        f.write(b["Y@GRAD"], f.total(f.mul(dx, ddout), summed(y.shape, whole)))


@grad_op(
    "elementwise_div_grad_grad",
    infer=aliases({"DDOut": "Out", "DOut": "Out", "Y@GRAD": "Y"}),
    dtype_slot="Out",
    cuda=FLOATS,
)
def elementwise_div_grad_grad(b: Binder) -> None:
    """DDOut = (DDX - Out · DDY) / Y; DOut, for Out itself, = -DX · DDY; dY = -DX · DDOut, summed."""
    _div_grad_grad(b, b.on_cuda)
