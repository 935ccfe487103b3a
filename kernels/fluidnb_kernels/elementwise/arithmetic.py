"""Arithmetic of two tensors with broadcasting, and the gradients of its gradients."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.op import Array, Binder, Context, aliases, default_grad, grad_op, kernel, op, second_grad
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import Operand, values
from fluidnb_kernels.c_expressions import rows_of
from fluidnb_kernels.cuda import of_dtype, wide_dtype
from fluidnb_kernels.elementwise.broadcast import AXIS, Shape, broadcast, filled, joined, lines_in_c, operands, summed
from fluidnb_kernels.elementwise.launch import CUDA, NUMBERS, binary, slopes
from fluidnb_kernels.emit import FLOATS, apply, zeros
from fluidnb_kernels.formulas import formulas
from fluidnb_kernels.rows.device_rows import on_rows_on_cuda, scale_values
from fluidnb_kernels.rows.values import as_x, dtype_of, on_rows, or_rows
from fluidnb_kernels.tensor import strided_copy

#: The gradient of one operand, not yet summed, as a formula of X, Y, Out and the gradient of Out.
Slope = Callable[[Operand, Operand, Operand, Operand], Operand]


def truncated_quotient(x: Array, y: Array, out: Array) -> None:
    """Integer division that rounds towards zero."""
    quotient = np.floor_divide(x, y)
    np.add(quotient, (quotient < 0) & (quotient * y != x), out=out)


class Row(NamedTuple):
    """One operator on two tensors."""

    formula: str  # what it computes
    ufunc: np.ufunc  # how numpy computes it
    example: tuple[list[float], list[float], str]  # X, Y and the result of a documented example
    dx: Slope | None = None  # the gradient of X; None where the operator has no gradient of this form
    dy: Slope | None = None  # the gradient of Y
    uses_out: bool = False  # whether the gradient reads Out
    slopes: str = ""  # formulas of the gradients


ROWS = {
    "mul": Row("X · Y", np.multiply, ([2.0, 3.0], [4.0], "[ 8., 12.]"), lambda x, y, out, g: g * y,
               lambda x, y, out, g: g * x,
               slopes="dX = dOut · Y; dY = dOut · X"),
    "div": Row("X / Y", np.divide, ([2.0, 3.0], [4.0], "[0.5 , 0.75]"), lambda x, y, out, g: g / y,
               lambda x, y, out, g: -(g * out / y), True,
               "dX = dOut / Y; dY = -dOut · Out / Y"),
    "max": Row("max(X, Y)", np.maximum, ([2.0, 5.0], [4.0], "[4., 5.]"), lambda x, y, out, g: g * (x > y),
               lambda x, y, out, g: g * (x <= y),
               slopes="dX = dOut where X > Y, dY = dOut elsewhere"),
    "min": Row("min(X, Y)", np.minimum, ([2.0, 5.0], [4.0], "[2., 4.]"), lambda x, y, out, g: g * (x < y),
               lambda x, y, out, g: g * (x >= y),
               slopes="dX = dOut where X < Y, dY = dOut elsewhere"),
    "fmax": Row("max(X, Y), the other one where one is NaN", np.fmax, ([2.0, 5.0], [4.0], "[4., 5.]"),
                lambda x, y, out, g: g * ((x >= y) | (y != y)),
                lambda x, y, out, g: g * ((x < y) | ((x != x) & (y == y))),
                slopes="dX = dOut where X >= Y or Y is NaN, dY = dOut elsewhere"),
    "fmin": Row("min(X, Y), the other one where one is NaN", np.fmin, ([2.0, 5.0], [4.0], "[2., 4.]"),
                lambda x, y, out, g: g * ((x <= y) | (y != y)),
                lambda x, y, out, g: g * ((x > y) | ((x != x) & (y == y))),
                slopes="dX = dOut where X <= Y or Y is NaN, dY = dOut elsewhere"),
    "pow": Row("X to the power of Y", np.power, ([2.0, 3.0], [2.0], "[4., 9.]"),
               lambda x, y, out, g: np.power(x, y - 1) * y * g, lambda x, y, out, g: np.power(x, y) * np.log(x) * g,
               slopes="dX = dOut · Y · X^(Y - 1); dY = dOut · X^Y · log X"),
    "add": Row("X + Y", np.add, ([2.0, 3.0], [4.0], "[6., 7.]")),
    "sub": Row("X - Y", np.subtract, ([2.0, 3.0], [4.0], "[-2., -1.]")),
    "floordiv": Row("X / Y rounded down", np.floor_divide, ([5.0, -5.0], [2.0], "[ 2., -3.]")),
    "mod": Row("what is left of X / Y rounded down", np.remainder, ([5.0, -5.0], [3.0], "[2., 1.]")),
}  # fmt: skip

_DOC = """Out = {formula}, element by element; Out inherits X's LoD.

    Y may have fewer dimensions than X: they begin at dimension ``axis`` of X, or align at the last one.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("elementwise_{name}", {{"X": {x}, "Y": {y}}})["Out"]
        array({result})

    Source: Fluid's elementwise_{name}_op.
    """


_SUM_AGAIN = ({"Y": "Y", "DOut": "Out@GRAD"}, {"DDX": "X@GRAD", "DDY": "Y@GRAD"}, {"DDOut": "Out@GRAD"})
#: The gradients of gradients: the slots as Paddle names them.
_AGAIN = {
    "add": second_grad("elementwise_add_grad_grad", *_SUM_AGAIN),
    "sub": second_grad("elementwise_sub_grad_grad", *_SUM_AGAIN),
    "mul": second_grad(
        "elementwise_mul_grad_grad", {"X": "X", "Y": "Y", "DOut": "Out@GRAD"}, {"DDX": "X@GRAD", "DDY": "Y@GRAD"},
        {"DDOut": "Out@GRAD", "X@GRAD": "X", "Y@GRAD": "Y"},
    ),
    "div": second_grad(
        "elementwise_div_grad_grad", {"Y": "Y", "Out": "Out", "DX": "X@GRAD", "Out@GRAD": "Out@GRAD"},
        {"DDX": "X@GRAD", "DDY": "Y@GRAD"}, {"DDOut": "Out@GRAD", "DOut": "Out", "Y@GRAD": "Y"},
    ),
}  # fmt: skip


def _grad_maker(name: str, row: Row) -> Any:
    if name in ("floordiv", "mod"):
        return None
    return default_grad("X", "Y", *(["Out"] if row.uses_out else []), "Out@GRAD")


def _arithmetic_define(name: str, row: Row) -> None:
    x, y, result = row.example

    @op(
        "elementwise_" + name,
        inputs={"X": "first operand", "Y": "second operand, a slice of X from dimension axis on"},
        outputs={"Out": row.formula},
        attrs={"axis": AXIS},
        cost="Out",
        infer=or_rows(broadcast),
        grad=_grad_maker(name, row),
        inplace=True,
        rows=as_x if name == "mul" else None,
        cuda=NUMBERS,
        doc=_DOC.format(name=name, formula=row.formula, x=x, y=y, result=result),
    )
    def elementwise(b: Binder) -> None:
        if b.on_cuda:
            if b.is_rows("X"):
                factor = of_dtype(b, _number(b, name), dtype_of(b["X"]))
                return on_rows_on_cuda(b, scale_values, factor, b.const(1, wide_dtype(factor.dtype))[()])
            return binary(b, CUDA, f"f::{name}", b["X"], b["Y"], b["Out"], joined(b))
        if b.is_rows("X"):
            return on_rows(b, np.multiply, _number(b, name).reshape(()))
        x, y = operands(b)
        whole = row.ufunc is np.divide and x.dtype.kind in "iu"
        return b(truncated_quotient if whole else row.ufunc, x, y, out=b["Out"])

    dx, dy = row.dx, row.dy
    if dx is None or dy is None:
        return

    def elementwise_grad(b: Binder) -> None:
        sx, sy, so = joined(b)
        x, y = operands(b)
        for slot, shape, slope in (("X@GRAD", sx, dx), ("Y@GRAD", sy, dy)):
            axes = summed(shape, so)
            if b.wants(slot):
                target = b[slot].reshape(shape)
                whole = b.like(b["Out@GRAD"]) if axes else target
                slope(*values(b, x, y, b["Out"], b["Out@GRAD"])).into(whole)
                if axes:
                    b(np.add.reduce, whole, axes, None, target, True)

    elementwise_grad.__doc__ = row.slopes + ", summed where an operand was repeated."
    grad_op(f"elementwise_{name}_grad", grad=_AGAIN.get(name))(elementwise_grad)

    @kernel(f"elementwise_{name}_grad", place="cuda", dtypes=FLOATS)
    def grad_on_cuda(b: Binder) -> None:
        g = b["Out@GRAD"]
        read = b["X"], b["Y"], b["Out"] if row.uses_out else g, g
        dx, dy = (b[slot] if b.wants(slot) else None for slot in ("X@GRAD", "Y@GRAD"))
        slopes(b, name, read, (dx, dy), joined(b))


def _number(b: Binder, name: str) -> Array:
    """The number with which SelectedRows are multiplied, as the clip by global norm needs it."""
    b.require(
        name == "mul" and b["Y"].size == 1, f"Input(X) of elementwise_{name} is SelectedRows.",
        expected="a tensor, or elementwise_mul with one number", received=f"Y of shape {list(b['Y'].shape)}",
        hint="get_tensor_from_selected_rows gives the values as a tensor.",
    )  # fmt: skip
    return b["Y"]


#: Functions of the CUDA kernels that have another name in C for whole numbers.
_WHOLE = {
    "quotient": "whole_quotient", "power": "whole_power", "rounded_down": "whole_rounded_down",
    "remainder_of": "whole_remainder",
}  # fmt: skip


def _of_whole_numbers(expression: str) -> str:
    """An expression for whole numbers, which are never not a number."""
    name, bracket, rest = expression.partition("(")
    return (_WHOLE.get(name, name) + bracket + rest).replace(" || x != x", "")


def _define_in_c(name: str) -> None:
    """Register C code of an operator and its gradient, with the expressions of the CUDA kernels."""

    def constants(c: Context, ats: tuple[int, ...]) -> dict[str, Constant]:
        file = Path(__file__).with_name("elementwise.cu")
        row = (rows_of(file, "WITH_SLOPES") | rows_of(file, "JOINED"))[name]
        if c["X"].dtype.kind in "iu":
            row = [_of_whole_numbers(expression) for expression in row]
        found: dict[str, Constant] = {"X_COUNT": math.prod(c["X"].shape), "Y_COUNT": math.prod(c["Y"].shape)}
        found |= lines_in_c(c)
        return found | {n: row[at] for n, at in zip(("VALUE",) if ats == (0,) else ("DX", "DY"), ats, strict=True)}

    @c_code(f"elementwise_{name}", function="joined")
    def forward(c: Context) -> dict[str, Constant]:
        return constants(c, (0,))

    if name not in ("floordiv", "mod"):

        @c_code(f"elementwise_{name}_grad", function="slopes_with_out" if ROWS[name].uses_out else "slopes")
        def backward(c: Context) -> dict[str, Constant]:
            return constants(c, (1, 2))


for _name, _row in ROWS.items():
    _arithmetic_define(_name, _row)
    _define_in_c(_name)


@grad_op("elementwise_add_grad", infer=None, grad=_AGAIN["add"])
def elementwise_add_grad(b: Binder) -> None:
    """dX = dOut; dY = dOut, summed where an operand was repeated."""
    _pass_on(b, "X", None)
    _pass_on(b, "Y", None)


@grad_op("elementwise_sub_grad", infer=None, grad=_AGAIN["sub"])
def elementwise_sub_grad(b: Binder) -> None:
    """dX = dOut; dY = -dOut, summed where an operand was repeated."""
    _pass_on(b, "X", None)
    _pass_on(b, "Y", np.negative)


def _pass_on(b: Binder, slot: str, sign: np.ufunc | None) -> None:
    """Emit the gradient of one operand of a sum or a difference: dOut itself where nothing is to be done."""
    x, g, out = b[slot], b["Out@GRAD"], slot + "@GRAD"
    if not b.wants(out):
        return None
    sx, sy, so = joined(b)
    shape = sx if slot == "X" else sy
    axes = summed(shape, so)
    if not axes and sign is None:
        return b.alias(out, g.reshape(x.shape), b.lod(slot))
    dx = b.set(out, x.shape, x.dtype, b.lod(slot))
    if not axes:
        return b(np.negative, g, out=dx.reshape(so))
    target = dx if sign is None else b.like(x)
    b(np.add.reduce, g, axes, None, target.reshape(shape), True)
    if sign is not None:
        b(sign, target, out=dx)


def _sums_on_cuda(name: str) -> None:
    """Register the CUDA kernels of the gradients of a sum or a difference."""

    @kernel(f"elementwise_{name}_grad", place="cuda", dtypes=FLOATS)
    def on_cuda(b: Binder) -> None:
        g, shapes = b["Out@GRAD"], joined(b)

        def target(slot: str, shape: Shape, passes: bool) -> Array | None:
            x = b[slot]
            if passes and not summed(shape, shapes[2]):
                b.alias(slot + "@GRAD", g.reshape(x.shape), b.lod(slot))
                return None
            return b.set(slot + "@GRAD", x.shape, x.dtype, b.lod(slot))

        dx, dy = target("X", shapes[0], True), target("Y", shapes[1], name == "add")
        if dx is not None or dy is not None:
            slopes(b, name, (b["X"], b["Y"], g, g), (dx, dy), shapes)


_sums_on_cuda("add")
_sums_on_cuda("sub")


def _seen(b: Binder, slot: str) -> Array | None:
    """An operand's gradient with the dimensions of DOut; None where there is none."""
    value, whole = b[slot], b["DOut"].shape
    if value is None or value.ndim == len(whole):
        return value
    return value.reshape(filled(b, whole, value.shape))


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
            strided_copy.move(b, out, only, of=strided_copy.layout_of(only, _shape(b, only)))
        return
    if ddx is None:
        ddx = b.tmp((1,), out.dtype)
        strided_copy.fill(b, ddx)
    binary(b, CUDA, f"f::{name}", ddx, ddy, out, (_shape(b, ddx), _shape(b, ddy), so))


def _shape(b: Binder, value: Array) -> Shape:
    """The shape of an operand's gradient with the dimensions of DOut."""
    whole = b["DOut"].shape
    return value.shape if value.ndim == len(whole) else filled(b, whole, value.shape)


def _second_gradients_define(name: str, join: np.ufunc, sign: str) -> None:
    def on_host(b: Binder) -> None:
        _joined(b, _seen(b, "DDX"), _seen(b, "DDY"), join)

    on_host.__doc__ = f"DDOut = DDX {sign} DDY."
    grad_op(f"elementwise_{name}_grad_grad", infer=aliases({"DDOut": "DOut"}), dtype_slot="DOut")(on_host)

    @kernel(f"elementwise_{name}_grad_grad", place="cuda", dtypes=FLOATS)
    def on_cuda(b: Binder) -> None:
        _joined_on_cuda(b, b["DDX"], b["DDY"], name)


_second_gradients_define("add", np.add, "+")
_second_gradients_define("sub", np.subtract, "-")


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
        return f.read(value, filled(b, whole, value.shape))

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
