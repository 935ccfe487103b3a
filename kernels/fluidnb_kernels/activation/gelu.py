"""erf and gelu: the error function, and X weighted with the normal distribution."""

from __future__ import annotations

import math

import numpy as np

from fluidnb.op import Array, Attr
from fluidnb_kernels.activation.table import Row, define
from fluidnb_kernels.arithmetic import Operand

#: The factor of X³ in the approximation by tanh.
CUBIC = 0.044715


def error_function(x: Array, out: Array) -> None:
    """Write erf of each element."""
    out[...] = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def _bell(x: Operand, factor: float, width: float) -> Operand:
    """factor · exp(-width · x²)."""
    t = x * x * -width
    np.exp(t, out=t)
    t *= factor
    return t


def _below(x: Operand) -> Operand:
    """(1 + erf(x / √2)) / 2: the cumulative normal distribution at x."""
    t = (x * math.sqrt(0.5)).through(error_function)
    t += 1
    t *= 0.5
    return t


def _bent(x: Operand) -> tuple[Operand, Operand]:
    """x², and tanh(√(2/π) · (x + CUBIC · x³))."""
    square = x * x
    t = square * CUBIC
    t += 1
    t *= x
    t *= math.sqrt(2 / math.pi)
    return square, np.tanh(t)


def _gelu(x: Operand) -> Operand:
    if not x.attr("approximate"):
        return x * _below(x)
    _, t = _bent(x)
    t += 1
    t *= 0.5
    return x * t


def _gelu_grad(x: Operand, g: Operand) -> Operand:
    if not x.attr("approximate", False):
        return g * (x * _bell(x, math.sqrt(0.5 / math.pi), 0.5) + _below(x))
    square, t = _bent(x)
    inner = square * (3 * CUBIC)
    inner += 1
    inner *= x
    inner *= math.sqrt(2 / math.pi)
    slope = inner * (1 - t * t) + (t + 1)
    slope *= 0.5
    return g * slope


ROWS = {
    "erf": Row("2/√π · ∫ exp(-t²) dt from 0 to X", lambda x: x.through(error_function), "dOut · 2/√π · exp(-X²)",
               ("X",), lambda x, g: g * _bell(x, 2 / math.sqrt(math.pi), 1.0),
               ("[0.0, 1.0]", "[0.    , 0.8427]")),
    "gelu": Row(
        "X · (1 + erf(X / √2)) / 2, or X · (1 + tanh(√(2/π) · (X + 0.044715 · X³))) / 2 with approximate", _gelu,
        "dOut · (P(X) + X · P'(X)), where Out = X · P(X)", ("X",), _gelu_grad, ("[0.0, 1.0]", "[0.    , 0.8413]"),
        {"approximate": Attr("bool", False, "use tanh in place of erf")}, source="Hendrycks, Gimpel (2016)",
    ),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
