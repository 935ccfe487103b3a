"""What the tables of activations have in common: a row, and how it becomes an operator with its gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidnb.op import GRAD, Attr, Binder, aliases, default_grad, grad_op, kernel, op, same, second_grad
from fluidnb.op.grad import GradMaker
from fluidnb_kernels.cuda import Source, ctype, elements, vector, widths
from fluidnb_kernels.cuda.grid import each, elementwise
from fluidnb_kernels.emit import FLOATS, apply

Array = Any
#: ``forward(b, x, out)`` emits the function; ``out`` may be the memory of ``x``, so it is written last.
Forward = Callable[[Binder, Array, Array], None]
#: ``backward(b, v, g, dx)`` emits the gradient; v is the first of the slots that it reads beside Out@GRAD.
Backward = Callable[[Binder, Array, Array, Array], None]


@dataclass(frozen=True, slots=True)
class Again:
    """The gradient of a gradient: dX = slope(v) · dOut, where v is the slot that the gradient reads.

    Args:
        bend: ``bend(b, v)`` emits the change of the slope with v, divided by the slope if ``given`` is dX.
        given: what Paddle's operator calls the gradient that it reads beside v: dOut, or dX in ``grad_x``.
        suffix: what follows the activation in Paddle's name of the operator.
    """

    bend: Callable[[Binder, Array], Array]
    given: str = "grad_out"
    suffix: str = "_grad_grad"


#: For functions whose slope does not change where it has one.
STRAIGHT = Again(lambda b, v: b.const(0, v.dtype), "")


@dataclass(frozen=True, slots=True)
class Row:
    """One activation.

    Args:
        formula: what it computes.
        forward: emits it, or the numpy function that is it.
        slope: formula of the gradient of X.
        needs: slots that the gradient reads beside Out@GRAD; none where it is zero.
        backward: emits the gradient.
        example: an input and the result, for the documentation.
        attrs: its attributes.
        settings: their values in the example, where they are not the defaults.
        dtypes: the dtypes that it takes.
        source: who described it, where that is not Fluid alone.
        again: the gradient of its gradient, where there is one.
        numbers: what its CUDA kernels get for a, b and c, where that is not its attributes in order.
    """

    formula: str
    forward: Forward | np.ufunc
    slope: str
    needs: tuple[str, ...]
    backward: Backward
    example: tuple[str, str]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    settings: str = ""
    dtypes: tuple[str, ...] = FLOATS
    source: str = ""
    again: Again | None = None
    numbers: Callable[[Binder], tuple[float, ...]] | None = None


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
    """Register an activation and its gradient.

    Example:
        >>> from fluidnb.op import get_op
        >>> get_op("softsign").outputs["Out"].doc
        'X / (1 + |X|)'
    """

    @op(
        type,
        inputs={"X: float": "any shape"},
        outputs={"Out": row.formula},
        attrs=row.attrs,
        cost="X",
        infer=same(),
        grad=default_grad(*row.needs, "Out@GRAD"),
        inplace=True,
        dtypes=row.dtypes,
        doc=_DOC.format(
            formula=row.formula, type=type, x=row.example[0], result=row.example[1],
            settings=", " + row.settings if row.settings else "", source="; " + row.source if row.source else "",
        ),
    )  # fmt: skip
    def activation(b: Binder) -> None:
        if isinstance(row.forward, np.ufunc):
            b(row.forward, b["X"], out=b["Out"])
        else:
            row.forward(b, b["X"], b["Out"])

    def activation_grad(b: Binder) -> None:
        row.backward(b, b[row.needs[0]] if row.needs else None, b["Out@GRAD"], b["X@GRAD"])

    activation_grad.__doc__ = f"dX = {row.slope}."
    grad_op(type + "_grad", grad=None if row.again is None else _define_again(type, row, row.again))(activation_grad)
    _define_on_cuda(type, row)


def _numbers(row: Row, b: Binder) -> tuple[np.float64, ...]:
    """a, b and c of its CUDA kernels."""
    given = row.numbers(b) if row.numbers else [b.attr(name, a.default) for name, a in row.attrs.items()]
    a, b_, c = (*map(np.float64, given), *[np.float64(0)] * 3)[:3]
    return a, b_, c


def _define_on_cuda(type: str, row: Row) -> None:
    """Register its CUDA kernels, and those of its gradient."""
    _rows[type] = row

    @kernel(type, place="cuda", dtypes=row.dtypes)
    def forward(b: Binder) -> None:
        elementwise(b, CUDA, f"unary<f::{type}", b["X"], b["Out"], numbers=_numbers(row, b))

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
            row.backward(b, v, ddx, b[back])
        if b.wants(slot + GRAD):
            b(np.multiply, apply(b, np.multiply, again.bend(b, v), b[given]), ddx, out=b[slot + GRAD])

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


def number(b: Binder, name: str, dtype: Any, default: float | None = None) -> Array:
    """A float attribute as a constant.

    Args:
        dtype: dtype of the constant.
        default: its value where a gradient operator does not carry it.

    Returns:
        A constant of one element.
    """
    return b.const(b.attr(name, default), dtype)
