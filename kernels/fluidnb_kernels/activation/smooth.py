"""Smooth activations: one row for each operator, its gradient beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder
from fluidnb_kernels.activation.table import Again, Row, define, number
from fluidnb_kernels.emit import apply, of_paddle2

Array = Any


def logistic(b: Binder, x: Array) -> Array:
    """Emit 1 / (1 + exp(-x)).

    Returns:
        A workspace like ``x``.
    """
    t = apply(b, np.exp, apply(b, np.negative, x))
    b(np.add, t, b.const(1, x.dtype), out=t)
    return apply(b, np.reciprocal, t)


def _logsigmoid(b: Binder, x: Array, out: Array) -> None:
    b(np.negative, apply(b, np.logaddexp, apply(b, np.negative, x), b.const(0, x.dtype)), out=out)


def _logsigmoid_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    t = apply(b, np.exp, x)
    b(np.divide, g, apply(b, np.add, t, b.const(1, x.dtype)), out=dx)


def _softplus(b: Binder, x: Array, out: Array) -> None:
    bx = apply(b, np.multiply, x, number(b, "beta", x.dtype))
    t = apply(b, np.logaddexp, bx, b.const(0, x.dtype))
    b(np.divide, t, number(b, "beta", x.dtype), out=t)
    b(np.copyto, t, x, where=apply(b, np.greater, bx, number(b, "threshold", x.dtype)))
    b(np.copyto, out, t)


def _softplus_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    bx = apply(b, np.multiply, x, number(b, "beta", x.dtype, 1.0))
    t = logistic(b, bx)
    b(np.copyto, t, b.const(1, x.dtype), where=apply(b, np.greater, bx, number(b, "threshold", x.dtype, 20.0)))
    b(np.multiply, g, t, out=dx)


def _soft_relu(b: Binder, x: Array, out: Array) -> None:
    t = apply(b, np.maximum, x, b.const(-b.attr("threshold"), x.dtype))
    b(np.minimum, t, number(b, "threshold", x.dtype), out=t)
    b(np.logaddexp, t, b.const(0, x.dtype), out=out)


def _soft_relu_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    inner = apply(b, np.less, apply(b, np.absolute, out), number(b, "threshold", out.dtype))
    t = apply(b, np.expm1, apply(b, np.negative, out))
    b(np.negative, apply(b, np.multiply, t, g), out=t)
    b(np.multiply, t, inner, out=dx)


def _softsign(b: Binder, x: Array, out: Array) -> None:
    t = apply(b, np.add, apply(b, np.absolute, x), b.const(1, x.dtype))
    b(np.divide, x, t, out=out)


def _softsign_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    t = apply(b, np.add, apply(b, np.absolute, x), b.const(1, x.dtype))
    b(np.divide, g, apply(b, np.multiply, t, t), out=dx)


def _stanh(b: Binder, x: Array, out: Array) -> None:
    t = apply(b, np.tanh, apply(b, np.multiply, x, number(b, "scale_a", x.dtype)))
    b(np.multiply, t, number(b, "scale_b", x.dtype), out=out)


def _stanh_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    t = apply(b, np.tanh, apply(b, np.multiply, x, number(b, "scale_a", x.dtype)))
    slope = apply(b, np.subtract, b.const(1, x.dtype), apply(b, np.multiply, t, t))
    b(np.multiply, slope, b.const(b.attr("scale_a") * b.attr("scale_b"), x.dtype), out=slope)
    b(np.multiply, g, slope, out=dx)


def _tanh_shrink(b: Binder, x: Array, out: Array) -> None:
    b(np.subtract, x, apply(b, np.tanh, x), out=out)


def _tanh_shrink_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    t = apply(b, np.tanh, x)
    b(np.multiply, g, apply(b, np.multiply, t, t), out=dx)


def _sharpened(b: Binder, x: Array) -> Array:
    """Emit beta · x; the kernel of Paddle 2 ignores beta."""
    return x if of_paddle2(b) else apply(b, np.multiply, x, number(b, "beta", x.dtype, 1.0))


def _swish(b: Binder, x: Array, out: Array) -> None:
    b(np.multiply, x, logistic(b, _sharpened(b, x)), out=out)


def _swish_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    bx = _sharpened(b, x)
    s = logistic(b, bx)
    t = apply(b, np.multiply, apply(b, np.subtract, b.const(1, x.dtype), s), bx)
    b(np.add, t, b.const(1, x.dtype), out=t)
    b(np.multiply, apply(b, np.multiply, t, s), g, out=dx)


def _bend(b: Binder, x: Array, factor: Array, width: Array | None = None) -> Array:
    """Emit factor · (exp(min(x, 0) / width) - 1), which is 0 where x is positive."""
    t = apply(b, np.minimum, x, b.const(0, x.dtype))
    if width is not None:
        b(np.divide, t, width, out=t)
    b(np.expm1, t, out=t)
    b(np.multiply, t, factor, out=t)
    return t


def _elu(b: Binder, x: Array, out: Array) -> None:
    t = _bend(b, x, number(b, "alpha", x.dtype))
    b(np.add, apply(b, np.maximum, x, b.const(0, x.dtype)), t, out=out)


def _elu_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    slope = apply(b, np.add, b["Out"], number(b, "alpha", x.dtype, 1.0))
    b(np.copyto, slope, b.const(1, x.dtype), where=apply(b, np.greater, x, b.const(0, x.dtype)))
    b(np.multiply, g, slope, out=dx)


def _elu_bend(b: Binder, x: Array) -> Array:
    bend = apply(b, np.add, b["Out"], number(b, "alpha", x.dtype, 1.0))
    b(np.copyto, bend, b.const(0, x.dtype), where=apply(b, np.greater, x, b.const(0, x.dtype)))
    return bend


def _celu(b: Binder, x: Array, out: Array) -> None:
    alpha = number(b, "alpha", x.dtype)
    b(np.add, apply(b, np.maximum, x, b.const(0, x.dtype)), _bend(b, x, alpha, alpha), out=out)


def _celu_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    alpha = number(b, "alpha", x.dtype, 1.0)
    t = _bend(b, x, b.const(1, x.dtype), alpha)
    b(np.add, t, b.const(1, x.dtype), out=t)
    b(np.multiply, g, t, out=dx)


def _selu(b: Binder, x: Array, out: Array) -> None:
    t = apply(b, np.add, apply(b, np.maximum, x, b.const(0, x.dtype)), _bend(b, x, number(b, "alpha", x.dtype)))
    b(np.multiply, t, number(b, "scale", x.dtype), out=out)


def _selu_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    scale, alpha = b.attr("scale", SELU["scale"].default), b.attr("alpha", SELU["alpha"].default)
    slope = apply(b, np.add, out, b.const(scale * alpha, out.dtype))
    b(np.copyto, slope, b.const(scale, out.dtype), where=apply(b, np.greater, out, b.const(0, out.dtype)))
    b(np.multiply, g, slope, out=dx)


def _mish(b: Binder, x: Array, out: Array) -> None:
    b(np.multiply, x, apply(b, np.tanh, apply(b, np.logaddexp, x, b.const(0, x.dtype))), out=out)


def _mish_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    t = apply(b, np.tanh, apply(b, np.logaddexp, x, b.const(0, x.dtype)))
    rest = apply(b, np.subtract, b.const(1, x.dtype), apply(b, np.multiply, t, t))
    inner = apply(b, np.multiply, apply(b, np.multiply, rest, logistic(b, x)), x)
    b(np.multiply, apply(b, np.add, inner, t), g, out=dx)


SELU = {
    "scale": Attr("float", 1.0507009873554805, "factor of the whole"),
    "alpha": Attr("float", 1.6732632423543772, "factor of the negative side"),
}
ALPHA = {"alpha": Attr("float", 1.0, "how far it goes below 0")}

ROWS = {
    "logsigmoid": Row("log(1 / (1 + exp(-X)))", _logsigmoid, "dOut / (1 + exp(X))", ("X",), _logsigmoid_grad,
                      ("[0.0, 40.0]", "[-0.6931, -0.    ]")),
    "softplus": Row(
        "log(1 + exp(beta · X)) / beta, and X where beta · X > threshold", _softplus,
        "dOut / (1 + exp(-beta · X)), and dOut where beta · X > threshold", ("X",), _softplus_grad,
        ("[0.0, 30.0]", "[ 0.6931, 30.    ]"),
        {"beta": Attr("float", 1.0, "how sharp the bend is"), "threshold": Attr("float", 20.0, "where it is X itself")},
    ),
    "soft_relu": Row(
        "log(1 + exp(X held between -threshold and threshold))", _soft_relu,
        "dOut · (1 - exp(-Out)) where |Out| < threshold", ("Out",), _soft_relu_grad,
        ("[0.0, 50.0]", "[ 0.6931, 40.    ]"),
        {"threshold": Attr("float", 40.0, "how far X counts")},
    ),
    "softsign": Row("X / (1 + |X|)", _softsign, "dOut / (1 + |X|)²", ("X",), _softsign_grad,
                    ("[-1.0, 3.0]", "[-0.5 ,  0.75]")),
    "stanh": Row(
        "scale_b · tanh(scale_a · X)", _stanh, "dOut · scale_a · scale_b · (1 - tanh²(scale_a · X))", ("X",),
        _stanh_grad, ("[0.0, 9.0]", "[0.    , 1.7159]"),
        {"scale_a": Attr("float", 0.67, "factor of X"), "scale_b": Attr("float", 1.7159, "factor of the whole")},
        source="LeCun et al., Efficient BackProp (1998)",
    ),
    "tanh_shrink": Row("X - tanh(X)", _tanh_shrink, "dOut · tanh²(X)", ("X",), _tanh_shrink_grad,
                       ("[0.0, 2.0]", "[0.   , 1.036]")),
    "swish": Row(
        "X / (1 + exp(-beta · X))", _swish, "dOut · s · (1 + beta · X · (1 - s)), with s = 1 / (1 + exp(-beta · X))",
        ("X",), _swish_grad, ("[0.0, 2.0]", "[0.    , 1.7616]"), {"beta": Attr("float", 1.0, "how sharp the bend is")},
        source="Ramachandran, Zoph, Le (2017)", numbers=lambda b: (1.0 if of_paddle2(b) else b.attr("beta", 1.0),),
    ),
    "silu": Row("X / (1 + exp(-X))", _swish, "dOut · s · (1 + X · (1 - s)), with s = 1 / (1 + exp(-X))", ("X", "Out"),
                _swish_grad, ("[0.0, 2.0]", "[0.    , 1.7616]")),
    "elu": Row(
        "X where X > 0, alpha · (exp(X) - 1) elsewhere", _elu, "dOut where X > 0, dOut · (Out + alpha) elsewhere",
        ("X", "Out"), _elu_grad, ("[-1.0, 2.0]", "[-0.6321,  2.    ]"), ALPHA,
        source="Clevert, Unterthiner, Hochreiter (2016)", again=Again(_elu_bend),
    ),
    "celu": Row(
        "max(X, 0) + alpha · (exp(min(X, 0) / alpha) - 1)", _celu, "dOut · exp(min(X, 0) / alpha)", ("X",), _celu_grad,
        ("[-1.0, 2.0]", "[-0.6321,  2.    ]"), ALPHA, source="Barron (2017)",
    ),
    "selu": Row(
        "scale · (X where X > 0, alpha · (exp(X) - 1) elsewhere)", _selu,
        "scale · dOut where Out > 0, dOut · (Out + scale · alpha) elsewhere", ("Out",), _selu_grad,
        ("[-1.0, 2.0]", "[-1.1113,  2.1014]"), SELU, source="Klambauer et al. (2017)",
    ),
    "mish": Row(
        "X · tanh(log(1 + exp(X)))", _mish, "dOut · (t + X · (1 - t²) / (1 + exp(-X))), with t = tanh(log(1 + exp(X)))",
        ("X",), _mish_grad, ("[0.0, 2.0]", "[0.   , 1.944]"),
        {"threshold": Attr("float", 20.0, "ignored (compatibility with Paddle 2)")}, source="Misra (2019)",
    ),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
