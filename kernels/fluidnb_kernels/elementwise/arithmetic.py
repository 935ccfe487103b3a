"""Arithmetic of two tensors: one row for each operator."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder, default_grad, grad_op, kernel, op, second_grad
from fluidnb_kernels.arithmetic import Operand, values
from fluidnb_kernels.cuda import of_dtype, wide_dtype
from fluidnb_kernels.elementwise.broadcast import AXIS, Shape, broadcast, joined, operands, summed
from fluidnb_kernels.elementwise.launch import CUDA, NUMBERS, binary, slopes
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rows.device_rows import on_rows_on_cuda, scale_values
from fluidnb_kernels.rows.values import as_x, dtype_of, on_rows, or_rows

#: The gradient of one operand, not yet summed, as a formula of X, Y, Out and the gradient of Out.
Slope = Callable[[Operand, Operand, Operand, Operand], Operand]


def truncated_quotient(x: Array, y: Array, out: Array) -> None:
    """Integer division that rounds towards zero."""
    quotient = np.floor_divide(x, y)
    np.add(quotient, (quotient < 0) & (quotient * y != x), out=out)


@dataclass(frozen=True, slots=True)
class Row:
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


def _define(name: str, row: Row) -> None:
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


for _name, _row in ROWS.items():
    _define(_name, _row)


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
    return None


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
