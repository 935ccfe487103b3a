"""The functions of one tensor that most programs use: one row for each operator, its gradient beside it.

Gradients are written against Out where that saves keeping X, against X elsewhere: the slots that Paddle's own programs
carry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.activation.table import STRAIGHT, Again, Row, define
from fluidnb_kernels.emit import FLOATS, apply, zeros

Array = Any

#: The dtypes of functions that take whole numbers to whole numbers.
NUMBERS = (*FLOATS, "int32", "int64")


def _relu(b: Binder, x: Array, out: Array) -> None:
    b(np.maximum, x, b.const(0, x.dtype), out=out)


def _relu_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, apply(b, np.greater, out, b.const(0, out.dtype)), out=dx)


def _sigmoid(b: Binder, x: Array, out: Array) -> None:
    t = apply(b, np.exp, apply(b, np.negative, x))
    b(np.reciprocal, apply(b, np.add, t, b.const(1, x.dtype)), out=out)


def _sigmoid_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    slope = apply(b, np.multiply, apply(b, np.subtract, b.const(1, out.dtype), out), out)
    b(np.multiply, slope, g, out=dx)


def _tanh_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, apply(b, np.subtract, b.const(1, out.dtype), apply(b, np.multiply, out, out)), out=dx)


def _exp_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, out, out=dx)


def _log_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.divide, g, x, out=dx)


def _sqrt_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    b(np.multiply, apply(b, np.divide, g, out), b.const(0.5, out.dtype), out=dx)


def _rsqrt(b: Binder, x: Array, out: Array) -> None:
    b(np.reciprocal, apply(b, np.sqrt, x), out=out)


def _rsqrt_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    cube = apply(b, np.multiply, apply(b, np.multiply, out, out), out)
    b(np.multiply, apply(b, np.multiply, cube, b.const(-0.5, out.dtype)), g, out=dx)


def _square(b: Binder, x: Array, out: Array) -> None:
    b(np.multiply, x, x, out=out)


def _square_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.multiply, apply(b, np.multiply, x, b.const(2, x.dtype)), g, out=dx)


def _abs_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.multiply, apply(b, np.sign, x), g, out=dx)


def _reciprocal_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    b(np.negative, apply(b, np.multiply, apply(b, np.multiply, out, out), g), out=dx)


def _sin_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.multiply, apply(b, np.cos, x), g, out=dx)


def _cos_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.negative, apply(b, np.multiply, apply(b, np.sin, x), g), out=dx)


def _one(b: Binder, v: Array) -> Array:
    return b.const(1, v.dtype)


def _two(b: Binder, x: Array) -> Array:
    return b.const(2, x.dtype)


def _sigmoid_bend(b: Binder, out: Array) -> Array:
    return apply(b, np.subtract, b.const(1, out.dtype), apply(b, np.multiply, out, b.const(2, out.dtype)))


def _twice_down(b: Binder, out: Array) -> Array:
    return apply(b, np.multiply, out, b.const(-2, out.dtype))


def _sin_bend(b: Binder, x: Array) -> Array:
    return apply(b, np.negative, apply(b, np.sin, x))


def _cos_bend(b: Binder, x: Array) -> Array:
    return apply(b, np.negative, apply(b, np.cos, x))


def _over(number: int) -> Callable[[Binder, Array], Array]:
    """A bend of number / v."""

    def bend(b: Binder, v: Array) -> Array:
        return apply(b, np.multiply, apply(b, np.reciprocal, v), b.const(number, v.dtype))

    return bend


def _log_bend(b: Binder, x: Array) -> Array:
    return apply(b, np.negative, apply(b, np.reciprocal, apply(b, np.multiply, x, x)))


def _no_slope(b: Binder, v: Array, g: Array, dx: Array) -> None:
    zeros(b, dx)


def round_half_away(x: Array, out: Array) -> None:
    """Round to the nearest whole number, halves away from zero.

    Args:
        out: the same shape, written.

    Example:
        >>> y = np.zeros(3); round_half_away(np.array([-2.5, 0.5, 1.4]), y); y
        array([-3.,  1.,  1.])
    """
    np.copyto(out, np.copysign(np.floor(np.abs(x) + 0.5), x))


def _round(b: Binder, x: Array, out: Array) -> None:
    b(round_half_away, x, out)


ROWS = {
    "relu": Row("max(X, 0)", _relu, "dOut where Out > 0, 0 elsewhere", ("Out",), _relu_grad,
                ("[-1.0, 2.0]", "[0., 2.]"), dtypes=NUMBERS, again=STRAIGHT),
    "sigmoid": Row("1 / (1 + exp(-X))", _sigmoid, "dOut · Out · (1 - Out)", ("Out",), _sigmoid_grad,
                   ("[0.0]", "[0.5]"), again=Again(_sigmoid_bend, "fwd_grad_out")),
    "tanh": Row("tanh(X)", np.tanh, "dOut · (1 - Out²)", ("Out",), _tanh_grad, ("[0.0]", "[0.]"),
                again=Again(_twice_down)),
    "exp": Row("exp(X)", np.exp, "dOut · Out", ("Out",), _exp_grad, ("[0.0]", "[1.]"), again=Again(_one)),
    "log": Row("the natural logarithm of X", np.log, "dOut / X", ("X",), _log_grad, ("[1.0]", "[0.]"),
               again=Again(_log_bend)),
    "sqrt": Row("√X", np.sqrt, "dOut / (2 · Out)", ("Out",), _sqrt_grad, ("[1.0, 4.0]", "[1., 2.]"),
                again=Again(_over(-1), "grad_x")),
    "rsqrt": Row("1 / √X", _rsqrt, "-dOut · Out³ / 2", ("Out",), _rsqrt_grad, ("[1.0, 4.0]", "[1. , 0.5]"),
                 again=Again(_over(3), "grad_x")),
    "square": Row("X²", _square, "2 · X · dOut", ("X",), _square_grad, ("[1.0, 4.0]", "[ 1., 16.]"), dtypes=NUMBERS,
                  again=Again(_two)),
    "abs": Row("|X|", np.absolute, "dOut · sign(X)", ("X",), _abs_grad, ("[-1.0, 4.0]", "[1., 4.]"), dtypes=NUMBERS,
               again=replace(STRAIGHT, suffix="_double_grad")),
    "reciprocal": Row("1 / X", np.reciprocal, "-dOut · Out²", ("Out",), _reciprocal_grad,
                      ("[1.0, 4.0]", "[1.  , 0.25]"), again=Again(_twice_down)),
    "sin": Row("sin(X)", np.sin, "dOut · cos(X)", ("X",), _sin_grad, ("[0.0]", "[0.]"),
               again=Again(_sin_bend, suffix="_double_grad")),
    "cos": Row("cos(X)", np.cos, "-dOut · sin(X)", ("X",), _cos_grad, ("[0.0]", "[1.]"),
               again=Again(_cos_bend, suffix="_double_grad")),
    "floor": Row("X rounded down", np.floor, "0", (), _no_slope, ("[-1.5, 1.5]", "[-2., 1.]")),
    "ceil": Row("X rounded up", np.ceil, "0", (), _no_slope, ("[-1.5, 1.5]", "[-1., 2.]")),
    "round": Row("X rounded to the nearest whole number, halves away from zero", _round, "0", (), _no_slope,
                 ("[-2.5, 0.5]", "[-3., 1.]")),
    "trunc": Row("X without its fraction", np.trunc, "0", (), _no_slope, ("[-1.5, 1.5]", "[-1., 1.]"), dtypes=NUMBERS,
                 source="Paddle's trunc_op"),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
