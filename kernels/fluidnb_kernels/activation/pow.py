"""pow: a power of each element."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, aliases, default_grad, grad_op, kernel, op, same, second_grad
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import Source, ctype, each, of_dtype, typed
from fluidnb_kernels.emit import FLOATS, apply, zeros
from fluidnb_kernels.formulas import Formulas
from fluidnb_kernels.rules import checked
from fluidnb_kernels.tensor.strided_copy import fill

_NUMBERS = (*FLOATS, "int32", "int64")


@op(
    "pow",
    inputs={"X": "any shape", "FactorTensor?: any[1]": "the power as a variable, instead of the attribute"},
    outputs={"Out": "X to the power of factor"},
    attrs={"factor": Attr("float", 1.0, "the power")},
    cost="X",
    infer=checked(same()),
    grad=default_grad("X", "FactorTensor", "Out@GRAD", wrt=["X"]),
    inplace=True,
    dtype_slot="X",
    cuda=_NUMBERS,
)
def pow(b: Binder) -> None:
    """Out = X to the power of factor, element by element; Out inherits X's LoD.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("pow", {"X": [2.0, 3.0]}, {"factor": 2.0})["Out"]
        array([4., 9.])

    Source: Fluid's activation_op.
    """
    x = b["X"]
    if b.on_cuda:
        return each(b, CUDA, f"powers<{ctype(x.dtype)}>", x.size, x, b["Out"], *_given(b, x.dtype))
    if not b.has("FactorTensor") and b.attr("factor") == 2:
        return b(np.multiply, x, x, out=b["Out"])
    return b(np.power, x, _factor(b, x.dtype), out=b["Out"])


def _factor(b: Binder, dtype: Any) -> Array:
    """The power, in the dtype of X."""
    if not b.has("FactorTensor"):
        return b.const(b.attr("factor", 1.0), dtype)
    factor = b["FactorTensor"].reshape(())
    if np.can_cast(factor.dtype, dtype, "same_kind"):
        return factor if factor.dtype == dtype else apply(b, np.positive, factor, dtype=dtype)
    whole = b.tmp((), np.dtype(dtype))
    b(np.copyto, whole, factor, casting="unsafe")
    return whole


_AGAIN = second_grad(
    "pow_double_grad", {"X": "X", "FactorTensor": "FactorTensor", "grad_out": "Out@GRAD"}, {"grad_x@GRAD": "X@GRAD"},
    {"X@GRAD": "X", "grad_out@GRAD": "Out@GRAD"},
)  # fmt: skip


@grad_op("pow_grad", dtype_slot="X", grad=_AGAIN, cuda=FLOATS)
def pow_grad(b: Binder) -> None:
    """dX = dOut · factor · X^(factor - 1), and 0 where factor is 0."""
    if b.on_cuda:
        if _without(b, 0):
            return fill(b, b["X@GRAD"])
        return _slopes(b, b["Out@GRAD"], b["X@GRAD"], *_given(b, b["X"].dtype))
    x, factor = b["X"], None if _without(b, 0) else _factor(b, b["X"].dtype)
    _slope(b, x, b["Out@GRAD"], b["X@GRAD"], factor)


def _without(b: Binder, *factors: float) -> bool:
    """Whether the power is an attribute and one of some numbers."""
    return not b.has("FactorTensor") and b.attr("factor", 1.0) in factors


def _slope(b: Binder, x: Array, g: Array, dx: Array, factor: Array | None) -> None:
    """Emit dx = g · factor · x^(factor - 1); 0 without a factor."""
    if factor is None:
        return zeros(b, dx)
    v, to, f = values(b, x, g, factor)
    return (np.power(v, f - 1) * f * to).into(dx)


@grad_op("pow_double_grad", infer=aliases({"X@GRAD": "X", "grad_out@GRAD": "grad_out"}), dtype_slot="X")
def pow_double_grad(b: Binder) -> None:
    """d(dOut) = ddX · factor · X^(factor - 1); dX = ddX · dOut · factor · (factor - 1) · X^(factor - 2)."""
    x, ddx, factor = b["X"], b["grad_x@GRAD"], _factor(b, b["X"].dtype)
    if b.wants("grad_out@GRAD"):
        _slope(b, x, ddx, b["grad_out@GRAD"], None if _without(b, 0) else factor)
    if b.wants("X@GRAD"):
        g = apply(b, np.multiply, apply(b, np.multiply, ddx, b["grad_out"]), factor)
        one = b.const(1, x.dtype)
        _slope(b, x, g, b["X@GRAD"], None if _without(b, 0, 1) else apply(b, np.subtract, factor, one))


CUDA = Source(__file__, "pow.cu", typed(("powers", _NUMBERS), ("powers_grad", FLOATS)))


def _given(b: Binder, dtype: Any) -> tuple[Array | None, np.float64]:
    """The variable of one element that holds the power, or None; and the attribute."""
    given = of_dtype(b, b["FactorTensor"], dtype) if b.has("FactorTensor") else None
    return given, np.float64(b.attr("factor", 1.0))


def _slopes(b: Binder, g: Array, dx: Array, given: Array | None, factor: np.float64) -> None:
    x = b["X"]
    each(b, CUDA, f"powers_grad<{ctype(x.dtype)}>", x.size, x, g, dx, given, factor)


@kernel("pow_double_grad", place="cuda", dtypes=FLOATS)
def _grad_grad_on_cuda(b: Binder) -> None:
    x, ddx = b["X"], b["grad_x@GRAD"]
    given, factor = _given(b, x.dtype)
    if b.wants("grad_out@GRAD"):
        if _without(b, 0):
            fill(b, b["grad_out@GRAD"])
        else:
            _slopes(b, ddx, b["grad_out@GRAD"], given, factor)
    if not b.wants("X@GRAD"):
        return
    if _without(b, 0, 1):
        return fill(b, b["X@GRAD"])
    f = Formulas(b, True, x.dtype)
    g = f.mul(f.mul(ddx, b["grad_out"]), f.number(factor) if given is None else given.reshape(1))
    less = None if given is None else f.sub(given.reshape(1), f.number(1))
    _slopes(b, g, b["X@GRAD"], less, np.float64(factor - 1))


@c_code("pow", function="pow_of_each")
@c_code("pow_grad", function="pow_of_each_grad")
def _pow_in_c(c: Context) -> dict[str, Constant]:
    given, factor = c.has("FactorTensor"), c.attr("factor", 1.0)
    found: dict[str, Constant] = {"COUNT": c["X"].size, "FACTOR": "FactorTensor[0]" if given else float(factor)}
    return {**found, "SQUARE": not given and factor == 2, "NOTHING": not given and factor == 0}
