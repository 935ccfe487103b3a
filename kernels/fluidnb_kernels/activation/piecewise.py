"""Piecewise linear activations: one row for each operator, with its gradient.

The gradient is that of the piece in which X lies; at a corner it is that of Fluid: zero, or the slope of one
of the two pieces.
"""

import numpy as np

from fluidnb.op import Attr, Context
from fluidnb_kernels.activation.table import STRAIGHT, Backward, Row, define
from fluidnb_kernels.arithmetic import Operand
from fluidnb_kernels.emit import of_paddle2


def _within(v: Operand, low: float, high: float) -> Operand:
    """Whether ``low < v < high``."""
    return np.logical_and(v > low, v < high)


def _brelu(x: Operand) -> Operand:
    return np.minimum(np.maximum(x, x.attr("t_min")), x.attr("t_max"))


def _brelu_grad(v: Operand, g: Operand) -> Operand:
    return g * _within(v, v.attr("t_min"), v.attr("t_max"))


def _beyond(name: str) -> Backward:
    """The gradient where |X| is larger than an attribute."""
    return lambda x, g: g * (abs(x) > x.attr(name))


def _leaky_relu(x: Operand) -> Operand:
    alpha = x.attr("alpha")
    larger = np.maximum if alpha else np.fmax  # 0 · inf is not a number
    return (larger if alpha < 1 else np.minimum)(x, x * alpha)


def _leaky_relu_grad(x: Operand, g: Operand) -> Operand:
    slope = g * x.attr("alpha", 0.02)
    slope.put(g, x >= 0)
    return slope


def _hard_sigmoid(x: Operand) -> Operand:
    t = x * x.attr("slope")
    t += x.attr("offset")
    np.maximum(t, 0, out=t)
    return np.minimum(t, 1)


def _hard_sigmoid_grad(out: Operand, g: Operand) -> Operand:
    inner = _within(out, 0, 1)
    return g * out.attr("slope") * inner


def _softshrink(x: Operand) -> Operand:
    width = x.attr("lambda")
    t = np.maximum(x, -width)
    np.minimum(t, width, out=t)
    return x - t


def _bound_of_relu6(c: Context) -> tuple[float]:
    """The upper bound; the kernel of Paddle 2 ignores its attribute."""
    return (6.0 if of_paddle2(c) else c.attr("threshold", 6.0),)


def _numbers_of_hard_swish(c: Context) -> tuple[float, float, float]:
    """Upper bound, divisor and what is added; the kernel of Paddle 2 ignores the attributes."""
    fixed = {"threshold": 6.0, "scale": 6.0, "offset": 3.0}
    threshold, scale, offset = (n if of_paddle2(c) else c.attr(name, n) for name, n in fixed.items())
    return threshold, scale, offset


def _gate(x: Operand) -> Operand:
    """``min(max(x + offset, 0), threshold)``."""
    threshold, _, offset = _numbers_of_hard_swish(x.binder)
    t = x + offset
    np.maximum(t, 0, out=t)
    np.minimum(t, threshold, out=t)
    return t


def _hard_swish(x: Operand) -> Operand:
    return _gate(x) * x / _numbers_of_hard_swish(x.binder)[1]


def _hard_swish_grad(x: Operand, g: Operand) -> Operand:
    threshold, scale, _ = _numbers_of_hard_swish(x.binder)
    gate = _gate(x)
    rising = _within(gate, 0, threshold)
    return (x * rising + gate) * g / scale


ROWS = {
    "brelu": Row(
        "min(max(X, t_min), t_max)", _brelu, "dOut where t_min < X < t_max", ("X",), _brelu_grad,
        ("[-1.0, 2.0, 30.0]", "[ 0.,  2., 24.]"),
        {"t_min": Attr("float", 0.0, "lower bound"), "t_max": Attr("float", 24.0, "upper bound")}, again=STRAIGHT,
    ),
    "relu6": Row(
        "min(max(X, 0), threshold)", lambda x: np.minimum(np.maximum(x, 0), *_bound_of_relu6(x.binder)),
        "dOut where 0 < Out < threshold", ("Out",), lambda v, g: g * _within(v, 0, *_bound_of_relu6(v.binder)),
        ("[-1.0, 2.0, 30.0]", "[0., 2., 6.]"), {"threshold": Attr("float", 6.0, "upper bound")}, again=STRAIGHT,
        numbers=_bound_of_relu6,
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
        "X where |X| > threshold, 0 elsewhere", lambda x: x * (abs(x) > x.attr("threshold")),
        "dOut where |X| > threshold", ("X",), _beyond("threshold"),
        ("[-1.0, 0.2]", "[-1.,  0.]"), {"threshold": Attr("float", 0.5, "what counts as nothing")},
        again=STRAIGHT,
    ),
    "softshrink": Row(
        "X moved towards 0 by lambda, and no further than 0", _softshrink, "dOut where |X| > lambda", ("X",),
        _beyond("lambda"), ("[-1.0, 0.2]", "[-0.5,  0. ]"), {"lambda": Attr("float", 0.5, "how far X is moved")},
        again=STRAIGHT,
    ),
    "thresholded_relu": Row(
        "X where X > threshold, 0 elsewhere", lambda x: x * (x > x.attr("threshold")),
        "dOut where X > threshold", ("X",),
        lambda x, g: g * (x > x.attr("threshold")), ("[0.5, 2.0]", "[0., 2.]"),
        {"threshold": Attr("float", 1.0, "below it nothing passes")}, again=STRAIGHT,
    ),
    "hard_swish": Row(
        "X · min(max(X + offset, 0), threshold) / scale", _hard_swish,
        "dOut · (gate + X where 0 < gate < threshold) / scale, with gate = min(max(X + offset, 0), threshold)", ("X",),
        _hard_swish_grad, ("[-4.0, 0.0, 3.0]", "[-0.,  0.,  3.]"),
        {"threshold": Attr("float", 6.0, "upper bound"), "scale": Attr("float", 6.0, "divisor"),
         "offset": Attr("float", 3.0, "what is added to X")},
        source="Howard et al., MobileNetV3 (2019)", numbers=_numbers_of_hard_swish,
    ),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
