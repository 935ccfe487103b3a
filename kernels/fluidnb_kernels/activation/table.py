"""The rows of the tables of activations, and their registration as operators with gradients."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from fluidnb.op import GRAD, Array, Attr, Binder, Context, aliases, default_grad, grad_op, kernel, op, same, second_grad
from fluidnb.op.c_code import Constant, c_code
from fluidnb.op.grad import GradMaker
from fluidnb_kernels.arithmetic import Operand, Value, values
from fluidnb_kernels.c_expressions import rows_of
from fluidnb_kernels.cuda import Source, ctype, each, elements, elementwise, of_dtype, vector, widths
from fluidnb_kernels.cuda.element_kernels import ElementKernel, describe
from fluidnb_kernels.emit import FLOATS, zeros

#: The function as a formula of X; Out may be the memory of X, so the last call alone writes it.
Forward = Callable[[Operand], Operand]
#: The gradient as a formula of the first slot that it reads beside Out@GRAD, and of Out@GRAD.
Backward = Callable[[Operand, Operand], Operand]


class Again(NamedTuple):
    """The gradient of a gradient: dX = slope(v) · dOut, where v is the slot that the gradient reads."""

    bend: Callable[[Operand], Operand]  # the change of the slope with v, divided by the slope if ``given`` is dX
    # what Paddle's operator calls the gradient that it reads beside v: dOut, or dX in ``grad_x``
    given: str = "grad_out"
    suffix: str = "_grad_grad"  # what follows the activation in Paddle's name of the operator


#: Whole numbers of which some functions compute float32, as Paddle 2 does.
_INTEGERS = ("int32", "int64")
#: For functions whose slope does not change where it has one.
STRAIGHT = Again(lambda v: 0, "")


class Row(NamedTuple):
    """One activation."""

    formula: str  # what it computes
    forward: Forward  # the function
    slope: str  # formula of the gradient of X
    needs: tuple[str, ...]  # slots that the gradient reads beside Out@GRAD; none where it is zero
    backward: Backward  # the gradient; 0 where it is zero
    example: tuple[str, str]  # an input and the result, for the documentation
    attrs: Mapping[str, Attr] = MappingProxyType({})  # its attributes
    settings: str = ""  # their values in the example, where they are not the defaults
    dtypes: tuple[str, ...] = FLOATS  # the dtypes that it takes
    source: str = ""  # who described it, where that is not Fluid alone
    again: Again | None = None  # the gradient of its gradient, where there is one
    # what its CUDA kernels get for a, b and c, where that is not its attributes in order
    numbers: Callable[[Context], tuple[float, ...]] | None = None
    is_series: bool = False  # whether it takes a series, which C code lacks
    of_integers: bool = False  # whether it takes int32 and int64 too; Out is float32 then

    @property
    def taken(self) -> tuple[str, ...]:
        """The dtypes of X."""
        return (*self.dtypes, *_INTEGERS) if self.of_integers else self.dtypes

    def infer(self, c: Context) -> None:
        """Shape rule: Out is like X, but float32 of integers where the function is none of them."""
        x = c["X"]
        c.set("Out", x.shape, np.float32 if self.converts(x) else x.dtype, c.lod("X"))

    def converts(self, x: Any) -> bool:
        """Whether an input holds integers that are converted to float32 first."""
        return self.of_integers and np.dtype(x.dtype).name in _INTEGERS

    def emit(self, b: Binder, x: Array, out: Array) -> None:
        """Emit the function."""
        self.forward(*values(b, x)).into(out)

    def emit_grad(self, b: Binder, v: Array, g: Array, dx: Array) -> None:
        """Emit the gradient from the slot that it reads and the gradient of Out."""
        slope = self.backward(*values(b, v, g))
        if isinstance(slope, Value):
            slope.into(dx)
        else:
            zeros(b, dx)


#: The rows of all tables.
_rows: dict[str, Row] = {}


def _kernels() -> Iterator[str]:
    for type, row in _rows.items():
        for dtype in elements(row.dtypes):
            for width in widths(dtype):
                yield f"unary<f::{type}, {ctype(dtype)}, {width}>"
                if dtype.name in FLOATS:
                    yield f"unary_grad<f::{type}, {ctype(dtype)}, {width}>"


def _kernels_again() -> Iterator[str]:
    for type, row in _rows.items():
        if row.again is not None and row.again.given:
            yield from (f"again<f::{type}, {ctype(dtype)}>" for dtype in elements(FLOATS))


#: The same functions for GPUs: ``f::NAME`` there is the row NAME here.
CUDA = Source(__file__, "activation.cu", _kernels)
describe(
    "unary",
    ElementKernel("F T N", "x y a b c", "x", {"y": "{F}::forward({x}, {C}({a}), {C}({b}), {C}({c}))"}),
)
describe(
    "unary_grad",
    ElementKernel("F T N", "v g dx a b c", "v g", {"dx": "{F}::backward({v}, {g}, {C}({a}), {C}({b}), {C}({c}))"}),
)
#: What their gradients' gradients have beside these.
CUDA_AGAIN = Source(__file__, "second_gradients.cu", _kernels_again)


_DOC = """Out = {formula}, element by element; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": {x}}}{settings})["Out"].round(4)
        array({result})

    Source: Fluid's activation_op{source}.
    """


def define(type: str, row: Row) -> None:
    """Register an activation and its gradient."""

    @op(
        type,
        inputs={"X: float | int" if row.of_integers else "X: float": "any shape"},
        outputs={"Out": row.formula + ("; float32 of integers" if row.of_integers else "")},
        attrs=row.attrs,
        cost="X",
        infer=row.infer if row.of_integers else same(),
        grad=default_grad(*row.needs, "Out@GRAD"),
        inplace=True,
        dtypes=row.taken,
        doc=_DOC.format(
            formula=row.formula, type=type, x=row.example[0], result=row.example[1],
            settings=", " + row.settings if row.settings else "", source="; " + row.source if row.source else "",
        ),
    )  # fmt: skip
    def activation(b: Binder) -> None:
        x = b["X"]
        if row.converts(x):
            x = b.like(x, np.float32)
            b(np.copyto, x, b["X"])
        row.emit(b, x, b["Out"])

    def activation_grad(b: Binder) -> None:
        row.emit_grad(b, b[row.needs[0]] if row.needs else None, b["Out@GRAD"], b["X@GRAD"])

    activation_grad.__doc__ = f"dX = {row.slope}."
    grad_op(type + "_grad", grad=None if row.again is None else _define_again(type, row, row.again))(activation_grad)
    _define_on_cuda(type, row)
    if not row.is_series:
        _define_in_c(type, row)


def _define_in_c(type: str, row: Row) -> None:
    """Register its C code and that of its gradient, with the expressions of the CUDA kernels."""
    slot = row.needs[0] if row.needs else "none"
    for name, function, at in ((type, "unary", 0), (f"{type}_grad", f"unary_grad_of_{slot.lower()}", 1)):

        @c_code(name, function=function)
        def constants(c: Context, at: int = at) -> dict[str, Constant]:
            if at == 0 and row.converts(c["X"]):
                c.fail(
                    f"The C code of {type} does not take integers.", expected="X of a floating dtype",
                    received=c["X"].dtype, hint="layers.cast changes a dtype.",
                )  # fmt: skip
            expression = rows_of(Path(__file__).with_name("activation.cu"), "FUNCTION")[type][at]
            count = math.prod(c["X" if at == 0 else "Out@GRAD"].shape)
            return {"COUNT": count, "VALUE": expression, **dict(zip("abc", map(float, _numbers(row, c)), strict=True))}


def _numbers(row: Row, b: Context) -> tuple[np.float64, ...]:
    """a, b and c of its CUDA kernels and its C code."""
    given = row.numbers(b) if row.numbers else [b.attr(name, a.default) for name, a in row.attrs.items()]
    a, b_, c = (*map(np.float64, given), *[np.float64(0)] * 3)[:3]
    return a, b_, c


def _define_on_cuda(type: str, row: Row) -> None:
    """Register its CUDA kernels, and those of its gradient."""
    _rows[type] = row

    @kernel(type, place="cuda", dtypes=row.taken)
    def forward(b: Binder) -> None:
        x = of_dtype(b, b["X"], np.dtype(np.float32)) if row.converts(b["X"]) else b["X"]
        elementwise(b, CUDA, f"unary<f::{type}", x, b["Out"], numbers=_numbers(row, b))

    @kernel(f"{type}_grad", place="cuda", dtypes=FLOATS)
    def backward(b: Binder) -> None:
        g = b["Out@GRAD"]
        v = b[row.needs[0]] if row.needs else g
        elementwise(b, CUDA, f"unary_grad<f::{type}", v, g, b["X@GRAD"], numbers=_numbers(row, b))


def _define_again(type: str, row: Row, again: Again) -> GradMaker:
    """Register the gradient of an activation's gradient; gives the maker for it."""
    slot, given = row.needs[0], again.given
    back = "grad_out@GRAD" if given in ("", "grad_x") else given + GRAD
    sources = {"": {}, "grad_x": {given: "X@GRAD"}}.get(given, {given: "Out@GRAD"})

    def activation_grad_grad(b: Binder) -> None:
        v, ddx = b[slot], b["grad_x@GRAD"]
        if b.wants(back):
            row.emit_grad(b, v, ddx, b[back])
        if b.wants(slot + GRAD):
            x, g, to = values(b, v, b[given], ddx)
            (again.bend(x) * g * to).into(b[slot + GRAD])

    name = type + again.suffix
    activation_grad_grad.__doc__ = f"The gradients of dX = {row.slope} with respect to dOut and {slot}."
    grad_op(name, infer=aliases({back: "grad_x@GRAD", slot + GRAD: slot}))(activation_grad_grad)

    @kernel(name, place="cuda", dtypes=FLOATS)
    def again_on_cuda(b: Binder) -> None:
        v, ddx = b[slot], b["grad_x@GRAD"]
        if b.wants(back):
            elementwise(b, CUDA, f"unary_grad<f::{type}", v, ddx, b[back], numbers=_numbers(row, b))
        if b.wants(slot + GRAD):
            operands, wide = (v, b[given], ddx, b[slot + GRAD]), widths(v.dtype)[1]
            args = *operands, _numbers(row, b)[0], np.int32(vector(*operands) > 1)
            each(b, CUDA_AGAIN, f"again<f::{type}, {ctype(v.dtype)}>", v.size, *args, per_thread=wide)

    gives = {back: "Out@GRAD"} if given == "" else {back: "Out@GRAD", slot + GRAD: slot}
    return second_grad(name, {**{s: s for s in row.needs}, **sources}, {"grad_x@GRAD": "X@GRAD"}, gives)
