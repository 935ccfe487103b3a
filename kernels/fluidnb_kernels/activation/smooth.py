"""Smooth activations and transcendental functions: one row for each operator, its gradient beside it."""

import math

import numpy as np

from fluidnb.op import Attr
from fluidnb_kernels.activation.table import Again, Row, define
from fluidnb_kernels.arithmetic import Operand
from fluidnb_kernels.emit import of_paddle2


def logistic(x: Operand) -> Operand:
    """1 / (1 + exp(-x))."""
    t = np.exp(-x)
    t += 1
    return np.reciprocal(t)


def log_1p_exp(x: Operand) -> Operand:
    """log(1 + exp(x)), without overflow and with exact small results."""
    t = np.exp(-abs(x))
    u = t + 1
    lost = u - 1  # by rounding: log(1 + t) = log(u) - (u - 1 - t) / u; np.log1p takes five times as long
    lost -= t
    lost /= u
    np.log(u, out=u)
    u -= lost
    return np.maximum(x, 0) + u


def _expm1_below(x: Operand) -> Operand:
    """exp(x) - 1 for x <= 0, exact near 0, by tanh: np.expm1 takes eight times as long."""
    t = x * 0.5
    np.tanh(t, out=t)
    return t / (1 - t) * 2


def _times(x: Operand, factor: float) -> Operand:
    """x · factor; x itself where that is 1."""
    return x if factor == 1 else x * factor


def _softplus(x: Operand) -> Operand:
    beta = x.attr("beta")
    bx = _times(x, beta)
    t = _times(log_1p_exp(bx), 1 / beta)
    t.put(x, bx > x.attr("threshold"))
    return t


def _softplus_grad(x: Operand, g: Operand) -> Operand:
    bx = _times(x, x.attr("beta", 1.0))
    t = logistic(bx)
    t.put(1, bx > x.attr("threshold", 20.0))
    return g * t


def _soft_relu(x: Operand) -> Operand:
    threshold = x.attr("threshold")
    t = np.maximum(x, -threshold)
    np.minimum(t, threshold, out=t)
    return log_1p_exp(t)


def _soft_relu_grad(out: Operand, g: Operand) -> Operand:
    inner = abs(out) < out.attr("threshold")
    t = _expm1_below(-out)
    np.negative(t * g, out=t)
    return t * inner


def _softsign_grad(x: Operand, g: Operand) -> Operand:
    t = abs(x) + 1
    return g / (t * t)


def _stanh_grad(x: Operand, g: Operand) -> Operand:
    t = np.tanh(x * x.attr("scale_a"))
    slope = 1 - t * t
    slope *= x.attr("scale_a") * x.attr("scale_b")
    return g * slope


def _tanh_shrink_grad(x: Operand, g: Operand) -> Operand:
    t = np.tanh(x)
    return g * (t * t)


def _sharpened(x: Operand) -> Operand:
    """beta · x; the kernel of Paddle 2 ignores beta."""
    return x if of_paddle2(x.binder) else x * x.attr("beta", 1.0)


def _swish(x: Operand) -> Operand:
    return x * logistic(_sharpened(x))


def _swish_grad(x: Operand, g: Operand) -> Operand:
    bx = _sharpened(x)
    s = logistic(bx)
    t = (1 - s) * bx
    t += 1
    return t * s * g


def _bend(x: Operand, factor: float, width: float | None = None) -> Operand:
    """factor · (exp(min(x, 0) / width) - 1), which is 0 where x is positive."""
    t = np.minimum(x, 0)
    if width is not None:
        t /= width
    return _times(_expm1_below(t), factor)


def _elu(x: Operand) -> Operand:
    t = _bend(x, x.attr("alpha"))
    return np.maximum(x, 0) + t


def _elu_slope(x: Operand, above: float) -> Operand:
    """Out + alpha where x is negative, a number elsewhere."""
    slope = x.slot("Out") + x.attr("alpha", 1.0)
    slope.put(above, x > 0)
    return slope


def _celu(x: Operand) -> Operand:
    alpha = x.attr("alpha")
    return np.maximum(x, 0) + _bend(x, alpha, alpha)


def _celu_grad(x: Operand, g: Operand) -> Operand:
    t = _bend(x, 1, x.attr("alpha", 1.0))
    t += 1
    return g * t


def _selu(x: Operand) -> Operand:
    return (np.maximum(x, 0) + _bend(x, x.attr("alpha"))) * x.attr("scale")


def _selu_grad(out: Operand, g: Operand) -> Operand:
    scale, alpha = out.attr("scale", SELU["scale"].default), out.attr("alpha", SELU["alpha"].default)
    slope = out + scale * alpha
    slope.put(scale, out > 0)
    return g * slope


def _highest(x: Operand) -> float:
    """The number from which on tanh(log(1 + exp(x))) is 1."""
    return 2 - math.log(np.finfo(np.float32 if x.array.dtype.kind != "f" else x.array.dtype).eps) / 2


def _tanh_log_1p_exp(x: Operand) -> Operand:
    """tanh(log(1 + exp(x))) = n / (n + 2), with n = exp(x) · (exp(x) + 2); tanh(x) where x > threshold."""
    t = np.exp(np.minimum(x, _highest(x)))
    t *= t + 2
    t = t / (t + 2)
    if x.attr("threshold", 20.0) < _highest(x):
        t.put(np.tanh(x), x > x.attr("threshold"))
    return t


def _mish_grad(x: Operand, g: Operand) -> Operand:
    t, slope = _tanh_log_1p_exp(x), logistic(x)
    if x.attr("threshold", 20.0) < _highest(x):
        slope.put(1, x > x.attr("threshold"))
    inner = (1 - t * t) * slope * x
    return (inner + t) * g


SELU = {
    "scale": Attr("float", 1.0507009873554805, "factor of the whole"),
    "alpha": Attr("float", 1.6732632423543772, "factor of the negative side"),
}
ALPHA = {"alpha": Attr("float", 1.0, "how far it goes below 0")}

def _root(x: Operand) -> Operand:
    """√(1 - x²)."""
    t = 1 - x * x
    np.sqrt(t, out=t)
    return t


def _tan_grad(x: Operand, g: Operand) -> Operand:
    cosine = np.cos(x)
    return g / (cosine * cosine)


ROWS = {
    "logsigmoid": Row("log(1 / (1 + exp(-X)))", lambda x: -log_1p_exp(-x), "dOut / (1 + exp(X))", ("X",),
                      lambda x, g: g / (np.exp(x) + 1), ("[0.0, 40.0]", "[-0.6931, -0.    ]")),
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
    "softsign": Row("X / (1 + |X|)", lambda x: x / (abs(x) + 1), "dOut / (1 + |X|)²", ("X",), _softsign_grad,
                    ("[-1.0, 3.0]", "[-0.5 ,  0.75]")),
    "stanh": Row(
        "scale_b · tanh(scale_a · X)", lambda x: np.tanh(x * x.attr("scale_a")) * x.attr("scale_b"),
        "dOut · scale_a · scale_b · (1 - tanh²(scale_a · X))", ("X",),
        _stanh_grad, ("[0.0, 9.0]", "[0.    , 1.7159]"),
        {"scale_a": Attr("float", 0.67, "factor of X"), "scale_b": Attr("float", 1.7159, "factor of the whole")},
        source="LeCun et al., Efficient BackProp (1998)",
    ),
    "tanh_shrink": Row("X - tanh(X)", lambda x: x - np.tanh(x), "dOut · tanh²(X)", ("X",), _tanh_shrink_grad,
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
        ("X", "Out"), lambda x, g: g * _elu_slope(x, 1), ("[-1.0, 2.0]", "[-0.6321,  2.    ]"), ALPHA,
        source="Clevert, Unterthiner, Hochreiter (2016)", again=Again(lambda x: _elu_slope(x, 0)),
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
        "X · tanh(log(1 + exp(X))), and X · tanh(X) where X > threshold", lambda x: x * _tanh_log_1p_exp(x),
        "dOut · (t + X · (1 - t²) / (1 + exp(-X))), with t = tanh(log(1 + exp(X))); alike where X > threshold",
        ("X",), _mish_grad, ("[0.0, 2.0]", "[0.   , 1.944]"),
        {"threshold": Attr("float", 20.0, "from where on log(1 + exp(X)) is X")}, source="Misra (2019)",
    ),
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
                 ("[0.0, 1.0]", "[0.    , 0.6931]"), of_integers=True),
    "expm1": Row("exp(X) - 1, exact near 0", np.expm1, "dOut · (Out + 1)", ("Out",), lambda out, g: g * (out + 1),
                 ("[0.0, 1.0]", "[0.    , 1.7183]"), of_integers=True),
    "log2": Row("the logarithm of X to base 2", np.log2, "dOut / (X · log 2)", ("X",),
                lambda x, g: g / (x * math.log(2)), ("[1.0, 8.0]", "[0., 3.]"), of_integers=True),
    "log10": Row("the logarithm of X to base 10", np.log10, "dOut / (X · log 10)", ("X",),
                 lambda x, g: g / (x * math.log(10)), ("[1.0, 100.0]", "[0., 2.]"), of_integers=True),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
