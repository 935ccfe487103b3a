"""erf and gelu: the error function, and X weighted with the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder
from fluidnb_kernels.activation.table import Row, define
from fluidnb_kernels.emit import apply

Array = Any

#: The factor of X³ in the approximation by tanh.
CUBIC = 0.044715


def error_function(x: Array, out: Array) -> None:
    """Write erf of each element.

    Args:
        x: any shape, float.

    Example:
        >>> y = np.zeros(2); error_function(np.array([0.0, 1.0]), y); y.round(4)
        array([0.    , 0.8427])
    """
    out[...] = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def _erf(b: Binder, x: Array, out: Array) -> None:
    b(error_function, x, out)


def _bell(b: Binder, x: Array, factor: float, width: float) -> Array:
    """Emit factor · exp(-width · x²)."""
    t = apply(b, np.multiply, apply(b, np.multiply, x, x), b.const(-width, x.dtype))
    b(np.exp, t, out=t)
    b(np.multiply, t, b.const(factor, x.dtype), out=t)
    return t


def _erf_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, _bell(b, x, 2 / math.sqrt(math.pi), 1.0), out=dx)


def _below(b: Binder, x: Array) -> Array:
    """Emit (1 + erf(x / √2)) / 2: the cumulative normal distribution at x."""
    t = b.like(x)
    b(error_function, apply(b, np.multiply, x, b.const(math.sqrt(0.5), x.dtype)), t)
    b(np.add, t, b.const(1, x.dtype), out=t)
    b(np.multiply, t, b.const(0.5, x.dtype), out=t)
    return t


def _bent(b: Binder, x: Array) -> tuple[Array, Array]:
    """Emit x², and tanh(√(2/π) · (x + CUBIC · x³))."""
    square = apply(b, np.multiply, x, x)
    t = apply(b, np.multiply, square, b.const(CUBIC, x.dtype))
    b(np.add, t, b.const(1, x.dtype), out=t)
    b(np.multiply, t, x, out=t)
    b(np.multiply, t, b.const(math.sqrt(2 / math.pi), x.dtype), out=t)
    return square, apply(b, np.tanh, t)


def _gelu(b: Binder, x: Array, out: Array) -> None:
    if not b.attr("approximate"):
        return b(np.multiply, x, _below(b, x), out=out)
    _, t = _bent(b, x)
    b(np.add, t, b.const(1, x.dtype), out=t)
    b(np.multiply, t, b.const(0.5, x.dtype), out=t)
    return b(np.multiply, x, t, out=out)


def _gelu_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    if not b.attr("approximate", False):
        slope = apply(b, np.multiply, x, _bell(b, x, math.sqrt(0.5 / math.pi), 0.5))
        return b(np.multiply, g, apply(b, np.add, slope, _below(b, x)), out=dx)
    square, t = _bent(b, x)
    inner = apply(b, np.multiply, square, b.const(3 * CUBIC, x.dtype))
    b(np.add, inner, b.const(1, x.dtype), out=inner)
    b(np.multiply, inner, x, out=inner)
    b(np.multiply, inner, b.const(math.sqrt(2 / math.pi), x.dtype), out=inner)
    rest = apply(b, np.subtract, b.const(1, x.dtype), apply(b, np.multiply, t, t))
    slope = apply(b, np.add, apply(b, np.multiply, inner, rest), apply(b, np.add, t, b.const(1, x.dtype)))
    b(np.multiply, slope, b.const(0.5, x.dtype), out=slope)
    return b(np.multiply, g, slope, out=dx)


ROWS = {
    "erf": Row("2/√π · ∫ exp(-t²) dt from 0 to X", _erf, "dOut · 2/√π · exp(-X²)", ("X",), _erf_grad,
               ("[0.0, 1.0]", "[0.    , 0.8427]")),
    "gelu": Row(
        "X · (1 + erf(X / √2)) / 2, or X · (1 + tanh(√(2/π) · (X + 0.044715 · X³))) / 2 with approximate", _gelu,
        "dOut · (P(X) + X · P'(X)), where Out = X · P(X)", ("X",), _gelu_grad, ("[0.0, 1.0]", "[0.    , 0.8413]"),
        {"approximate": Attr("bool", False, "use tanh in place of erf")}, source="Hendrycks, Gimpel (2016)",
    ),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
