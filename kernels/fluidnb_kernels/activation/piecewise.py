"""Piecewise linear activations: one row for each operator, with its gradient.

The gradient is that of the piece in which X lies; at a corner it is that of Fluid: zero, or the slope of one
of the two pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder
from fluidnb_kernels.activation.table import STRAIGHT, Backward, Forward, Row, define, number
from fluidnb_kernels.emit import apply

Array = Any


def _within(b: Binder, v: Array, low: Array, high: Array) -> Array:
    """Emit where ``low < v < high``."""
    return apply(b, np.logical_and, apply(b, np.greater, v, low), apply(b, np.less, v, high))


def _outside(b: Binder, x: Array, threshold: Array) -> Array:
    """Emit where ``|x| > threshold``."""
    return apply(b, np.greater, apply(b, np.absolute, x), threshold)


def _held(low: str | float, high: str) -> tuple[Forward, Backward]:
    """X held between two bounds, each a number or the name of an attribute."""

    def bound(b: Binder, value: str | float, dtype: Any) -> Array:
        return number(b, value, dtype) if isinstance(value, str) else b.const(value, dtype)

    def forward(b: Binder, x: Array, out: Array) -> None:
        t = b.like(x)
        b(np.maximum, x, bound(b, low, x.dtype), out=t)
        b(np.minimum, t, bound(b, high, x.dtype), out=out)

    def backward(b: Binder, v: Array, g: Array, dx: Array) -> None:
        b(np.multiply, g, _within(b, v, bound(b, low, v.dtype), bound(b, high, v.dtype)), out=dx)

    return forward, backward


def _leaky_relu(b: Binder, x: Array, out: Array) -> None:
    lower = apply(b, np.multiply, x, number(b, "alpha", x.dtype))
    b(np.maximum if b.attr("alpha") < 1 else np.minimum, x, lower, out=out)


def _leaky_relu_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    slope = apply(b, np.multiply, g, number(b, "alpha", x.dtype, 0.02))
    b(np.copyto, slope, g, where=apply(b, np.greater_equal, x, b.const(0, x.dtype)))
    b(np.copyto, dx, slope)


def _hard_sigmoid(b: Binder, x: Array, out: Array) -> None:
    t = apply(b, np.multiply, x, number(b, "slope", x.dtype))
    b(np.add, t, number(b, "offset", x.dtype), out=t)
    b(np.maximum, t, b.const(0, x.dtype), out=t)
    b(np.minimum, t, b.const(1, x.dtype), out=out)


def _hard_sigmoid_grad(b: Binder, out: Array, g: Array, dx: Array) -> None:
    inner = _within(b, out, b.const(0, out.dtype), b.const(1, out.dtype))
    b(np.multiply, apply(b, np.multiply, g, number(b, "slope", g.dtype)), inner, out=dx)


def _hard_shrink(b: Binder, x: Array, out: Array) -> None:
    b(np.multiply, x, _outside(b, x, number(b, "threshold", x.dtype)), out=out)


def _hard_shrink_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, _outside(b, x, number(b, "threshold", x.dtype)), out=dx)


def _softshrink(b: Binder, x: Array, out: Array) -> None:
    width = b.attr("lambda")
    t = apply(b, np.maximum, x, b.const(-width, x.dtype))
    b(np.minimum, t, b.const(width, x.dtype), out=t)
    b(np.subtract, x, t, out=out)


def _softshrink_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, _outside(b, x, number(b, "lambda", x.dtype)), out=dx)


def _thresholded_relu(b: Binder, x: Array, out: Array) -> None:
    b(np.multiply, x, apply(b, np.greater, x, number(b, "threshold", x.dtype)), out=out)


def _thresholded_relu_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    b(np.multiply, g, apply(b, np.greater, x, number(b, "threshold", x.dtype)), out=dx)


def _gate(b: Binder, x: Array) -> Array:
    """Emit ``min(max(x + offset, 0), threshold)``."""
    t = apply(b, np.add, x, number(b, "offset", x.dtype))
    b(np.maximum, t, b.const(0, x.dtype), out=t)
    b(np.minimum, t, number(b, "threshold", x.dtype), out=t)
    return t


def _hard_swish(b: Binder, x: Array, out: Array) -> None:
    t = apply(b, np.multiply, _gate(b, x), x)
    b(np.divide, t, number(b, "scale", x.dtype), out=out)


def _hard_swish_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    gate = _gate(b, x)
    rising = _within(b, gate, b.const(0, x.dtype), number(b, "threshold", x.dtype))
    t = apply(b, np.add, apply(b, np.multiply, x, rising), gate)
    b(np.divide, apply(b, np.multiply, t, g), number(b, "scale", x.dtype), out=dx)


ROWS = {
    "brelu": Row(
        "min(max(X, t_min), t_max)", _held("t_min", "t_max")[0], "dOut where t_min < X < t_max", ("X",),
        _held("t_min", "t_max")[1], ("[-1.0, 2.0, 30.0]", "[ 0.,  2., 24.]"),
        {"t_min": Attr("float", 0.0, "lower bound"), "t_max": Attr("float", 24.0, "upper bound")}, again=STRAIGHT,
    ),
    "relu6": Row(
        "min(max(X, 0), threshold)", _held(0, "threshold")[0], "dOut where 0 < Out < threshold", ("Out",),
        _held(0, "threshold")[1], ("[-1.0, 2.0, 30.0]", "[0., 2., 6.]"),
        {"threshold": Attr("float", 6.0, "upper bound")}, again=STRAIGHT,
    ),
    "leaky_relu": Row(
        "X where X > 0, alpha · X elsewhere", _leaky_relu, "dOut where X >= 0, alpha · dOut elsewhere", ("X",),
        _leaky_relu_grad, ("[-1.0, 2.0]", "[-0.02,  2.  ]"),
        {"alpha": Attr("float", 0.02, "slope where X is negative")}, again=STRAIGHT,
    ),
    "hard_sigmoid": Row(
        "slope · X + offset held between 0 and 1", _hard_sigmoid, "slope · dOut where 0 < Out < 1", ("Out",),
        _hard_sigmoid_grad, ("[-9.0, 0.0, 1.0]", "[0. , 0.5, 0.7]"),
        {"slope": Attr("float", 0.2, "slope in the middle"), "offset": Attr("float", 0.5, "value at 0")},
        again=STRAIGHT,
    ),
    "hard_shrink": Row(
        "X where |X| > threshold, 0 elsewhere", _hard_shrink, "dOut where |X| > threshold", ("X",), _hard_shrink_grad,
        ("[-1.0, 0.2]", "[-1.,  0.]"), {"threshold": Attr("float", 0.5, "what counts as nothing")},
        again=STRAIGHT,
    ),
    "softshrink": Row(
        "X moved towards 0 by lambda, and no further than 0", _softshrink, "dOut where |X| > lambda", ("X",),
        _softshrink_grad, ("[-1.0, 0.2]", "[-0.5,  0. ]"), {"lambda": Attr("float", 0.5, "how far X is moved")},
        again=STRAIGHT,
    ),
    "thresholded_relu": Row(
        "X where X > threshold, 0 elsewhere", _thresholded_relu, "dOut where X > threshold", ("X",),
        _thresholded_relu_grad, ("[0.5, 2.0]", "[0., 2.]"),
        {"threshold": Attr("float", 1.0, "below it nothing passes")}, again=STRAIGHT,
    ),
    "hard_swish": Row(
        "X · min(max(X + offset, 0), threshold) / scale", _hard_swish,
        "dOut · (gate + X where 0 < gate < threshold) / scale, with gate = min(max(X + offset, 0), threshold)", ("X",),
        _hard_swish_grad, ("[-4.0, 0.0, 3.0]", "[-0.,  0.,  3.]"),
        {"threshold": Attr("float", 6.0, "upper bound"), "scale": Attr("float", 6.0, "divisor"),
         "offset": Attr("float", 3.0, "what is added to X")},
        source="Howard et al., MobileNetV3 (2019)",
    ),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
