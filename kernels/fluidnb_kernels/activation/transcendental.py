"""Trigonometric, hyperbolic and logarithmic functions: one row for each operator, its gradient beside it."""

from __future__ import annotations

import math

import numpy as np

from fluidnb_kernels.activation.table import Row, define
from fluidnb_kernels.arithmetic import Operand


def _root(x: Operand) -> Operand:
    """√(1 - x²)."""
    t = 1 - x * x
    np.sqrt(t, out=t)
    return t


def _tan_grad(x: Operand, g: Operand) -> Operand:
    cosine = np.cos(x)
    return g / (cosine * cosine)


ROWS = {
    "tan": Row("tan(X)", np.tan, "dOut / cos²(X)", ("X",), _tan_grad, ("[0.0]", "[0.]")),
    "acos": Row("the angle in [0, π] whose cosine is X", np.arccos, "-dOut / √(1 - X²)", ("X",),
                lambda x, g: -g / _root(x), ("[1.0, 0.0]", "[0.    , 1.5708]")),
    "asin": Row("the angle in [-π/2, π/2] whose sine is X", np.arcsin, "dOut / √(1 - X²)", ("X",),
                lambda x, g: g / _root(x), ("[0.0, 1.0]", "[0.    , 1.5708]")),
    "atan": Row("the angle in [-π/2, π/2] whose tangent is X", np.arctan, "dOut / (1 + X²)", ("X",),
                lambda x, g: g / (x * x + 1), ("[0.0, 1.0]", "[0.    , 0.7854]")),
    "sinh": Row("sinh(X)", np.sinh, "dOut · cosh(X)", ("X",), lambda x, g: g * np.cosh(x),
                ("[0.0, 1.0]", "[0.    , 1.1752]")),
    "cosh": Row("cosh(X)", np.cosh, "dOut · sinh(X)", ("X",), lambda x, g: g * np.sinh(x),
                ("[0.0, 1.0]", "[1.    , 1.5431]")),
    "acosh": Row("the number >= 0 whose cosh is X", np.arccosh, "dOut / √(X² - 1)", ("X",),
                 lambda x, g: g / np.sqrt(x * x - 1), ("[1.0, 2.0]", "[0.   , 1.317]")),
    "asinh": Row("the number whose sinh is X", np.arcsinh, "dOut / √(X² + 1)", ("X",),
                 lambda x, g: g / np.sqrt(x * x + 1), ("[0.0, 1.0]", "[0.    , 0.8814]")),
    "atanh": Row("the number whose tanh is X", np.arctanh, "dOut / (1 - X²)", ("X",), lambda x, g: g / (1 - x * x),
                 ("[0.0, 0.5]", "[0.    , 0.5493]")),
    "log1p": Row("log(1 + X), exact near 0", np.log1p, "dOut / (1 + X)", ("X",), lambda x, g: g / (x + 1),
                 ("[0.0, 1.0]", "[0.    , 0.6931]")),
    "expm1": Row("exp(X) - 1, exact near 0", np.expm1, "dOut · (Out + 1)", ("Out",), lambda out, g: g * (out + 1),
                 ("[0.0, 1.0]", "[0.    , 1.7183]")),
    "log2": Row("the logarithm of X to base 2", np.log2, "dOut / (X · log 2)", ("X",),
                lambda x, g: g / (x * math.log(2)), ("[1.0, 8.0]", "[0., 3.]")),
    "log10": Row("the logarithm of X to base 10", np.log10, "dOut / (X · log 10)", ("X",),
                 lambda x, g: g / (x * math.log(10)), ("[1.0, 100.0]", "[0., 2.]")),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
