"""Trigonometric, hyperbolic and logarithmic functions: one row for each operator, its gradient beside it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.activation.table import Backward, Row, define
from fluidnb_kernels.emit import apply

Array = Any


def _root(b: Binder, x: Array) -> Array:
    """Emit √(1 - x²)."""
    t = apply(b, np.subtract, b.const(1, x.dtype), apply(b, np.multiply, x, x))
    b(np.sqrt, t, out=t)
    return t


def _acos_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.divide, apply(b, np.negative, g), _root(b, x), out=dx)


def _asin_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.divide, g, _root(b, x), out=dx)


def _atan_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    t = apply(b, np.add, apply(b, np.multiply, x, x), b.const(1, x.dtype))
    b(np.divide, g, t, out=dx)


def _tan_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    cosine = apply(b, np.cos, x)
    b(np.divide, g, apply(b, np.multiply, cosine, cosine), out=dx)


def _sinh_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, apply(b, np.cosh, x), out=dx)


def _cosh_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, apply(b, np.sinh, x), out=dx)


def _acosh_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    t = apply(b, np.subtract, apply(b, np.multiply, x, x), b.const(1, x.dtype))
    b(np.divide, g, apply(b, np.sqrt, t), out=dx)


def _asinh_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    t = apply(b, np.add, apply(b, np.multiply, x, x), b.const(1, x.dtype))
    b(np.divide, g, apply(b, np.sqrt, t), out=dx)


def _atanh_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.divide, g, apply(b, np.subtract, b.const(1, x.dtype), apply(b, np.multiply, x, x)), out=dx)


def _log1p_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.divide, g, apply(b, np.add, x, b.const(1, x.dtype)), out=dx)


def _expm1_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, apply(b, np.add, out, b.const(1, out.dtype)), out=dx)


def _logarithm_grad(base: int) -> Backward:
    def backward(b: Binder, x: Array, g: Array, dx: Array) -> None:
        b(np.divide, g, apply(b, np.multiply, x, b.const(math.log(base), x.dtype)), out=dx)

    return backward


ROWS = {
    "tan": Row("tan(X)", np.tan, "dOut / cos²(X)", ("X",), _tan_grad, ("[0.0]", "[0.]")),
    "acos": Row("the angle in [0, π] whose cosine is X", np.arccos, "-dOut / √(1 - X²)", ("X",), _acos_grad,
                ("[1.0, 0.0]", "[0.    , 1.5708]")),
    "asin": Row("the angle in [-π/2, π/2] whose sine is X", np.arcsin, "dOut / √(1 - X²)", ("X",), _asin_grad,
                ("[0.0, 1.0]", "[0.    , 1.5708]")),
    "atan": Row("the angle in [-π/2, π/2] whose tangent is X", np.arctan, "dOut / (1 + X²)", ("X",), _atan_grad,
                ("[0.0, 1.0]", "[0.    , 0.7854]")),
    "sinh": Row("sinh(X)", np.sinh, "dOut · cosh(X)", ("X",), _sinh_grad, ("[0.0, 1.0]", "[0.    , 1.1752]")),
    "cosh": Row("cosh(X)", np.cosh, "dOut · sinh(X)", ("X",), _cosh_grad, ("[0.0, 1.0]", "[1.    , 1.5431]")),
    "acosh": Row("the number >= 0 whose cosh is X", np.arccosh, "dOut / √(X² - 1)", ("X",), _acosh_grad,
                 ("[1.0, 2.0]", "[0.   , 1.317]")),
    "asinh": Row("the number whose sinh is X", np.arcsinh, "dOut / √(X² + 1)", ("X",), _asinh_grad,
                 ("[0.0, 1.0]", "[0.    , 0.8814]")),
    "atanh": Row("the number whose tanh is X", np.arctanh, "dOut / (1 - X²)", ("X",), _atanh_grad,
                 ("[0.0, 0.5]", "[0.    , 0.5493]")),
    "log1p": Row("log(1 + X), exact near 0", np.log1p, "dOut / (1 + X)", ("X",), _log1p_grad,
                 ("[0.0, 1.0]", "[0.    , 0.6931]")),
    "expm1": Row("exp(X) - 1, exact near 0", np.expm1, "dOut · (Out + 1)", ("Out",), _expm1_grad,
                 ("[0.0, 1.0]", "[0.    , 1.7183]")),
    "log2": Row("the logarithm of X to base 2", np.log2, "dOut / (X · log 2)", ("X",), _logarithm_grad(2),
                ("[1.0, 8.0]", "[0., 3.]")),
    "log10": Row("the logarithm of X to base 10", np.log10, "dOut / (X · log 10)", ("X",), _logarithm_grad(10),
                 ("[1.0, 100.0]", "[0., 2.]")),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
