"""erf, gelu, lgamma, digamma and logit: functions that numpy lacks; one row for each operator.

Numpy has no gamma function. The functions here move X up to numbers where Stirling's series is exact, and use the
reflection at 1/2 for those below it; they compute in float64 whatever the dtype.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from fluidnb.op import Array, Attr
from fluidnb_kernels.activation.table import Row, define
from fluidnb_kernels.arithmetic import Operand

#: Bernoulli's numbers B2, B4, … B14.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
#: From here on the series with these numbers is as exact as float64.
_FAR = 9
#: The factors of their series.
_LGAMMA = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)]
_DIGAMMA = [-b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)]


def _series(z: Array, factors: Sequence[float]) -> Array:
    """The sum of factor k times z to the power of 1 - 2k, k from 1."""
    step = 1 / (z * z)
    total = np.zeros_like(z)
    for factor in reversed(factors):
        total = total * step + factor
    return total / z


def _apart(x: Array) -> tuple[Array, Array, Array]:
    """A mask of the numbers below 1/2, all reflected above it, and their distances to whole numbers."""
    x = x.astype(np.float64)
    low = x < 0.5
    return low, np.where(low, 1 - x, x), x - np.round(x)


def _climb(z: Array, term: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Numbers moved up by ones until all are far enough, and the sum of a term over the numbers that were passed."""
    total = np.zeros_like(z)
    for _ in range(_FAR):
        near = z < _FAR
        total = total + np.where(near, term(z), 0)
        z = np.where(near, z + 1, z)
    return z, total


def lgamma(x: Array, out: Array) -> None:
    """Write the logarithm of |Γ(x)|; infinite where x is a whole number below 1."""
    with np.errstate(all="ignore"):  # poles and infinite numbers
        low, up, fraction = _apart(x)
        z, passed = _climb(up, np.log)
        value = (z - 0.5) * (np.log(z) - 1) + 0.5 * np.log(2 * np.pi) - 0.5 + _series(z, _LGAMMA) - passed
        mirrored = np.log(np.pi / np.abs(np.sin(np.pi * fraction))) - value
        np.copyto(out, np.where(low, mirrored, value), casting="same_kind")


def digamma(x: Array, out: Array) -> None:
    """Write the slope of the logarithm of Γ(x); NaN where x is a whole number below 1."""
    with np.errstate(all="ignore"):  # poles and infinite numbers
        low, up, fraction = _apart(x)
        z, passed = _climb(up, np.reciprocal)
        value = np.log(z) - 0.5 / z + _series(z, _DIGAMMA) / z - passed
        mirrored = value - np.pi / np.tan(np.pi * fraction)
        np.copyto(out, np.where(low, np.where(fraction == 0, np.nan, mirrored), value), casting="same_kind")


def trigamma(x: Array, out: Array) -> None:
    """Write the slope of `digamma`; infinite where x is a whole number below 1."""
    with np.errstate(all="ignore"):  # poles and infinite numbers
        low, up, fraction = _apart(x)
        z, passed = _climb(up, lambda n: 1 / (n * n))
        value = 1 / z + (0.5 + _series(z, _BERNOULLI)) / (z * z) + passed
        mirrored = (np.pi / np.sin(np.pi * fraction)) ** 2 - value
        np.copyto(out, np.where(low, mirrored, value), casting="same_kind")


def _limited(x: Operand) -> tuple[Operand, Operand]:
    """X limited to [eps, 1 - eps], and 1 - that."""
    eps = x.attr("eps", 1e-6)
    inner = np.minimum(np.maximum(x, eps), 1 - eps) if eps else x
    return inner, 1 - inner


def _logit_grad(x: Operand, g: Operand) -> Operand:
    eps, (inner, rest) = x.attr("eps", 1e-6), _limited(x)
    slope = g / (inner * rest)
    return slope * np.logical_and(x >= eps, x <= 1 - eps)


#: The factor of X³ in the approximation by tanh.
CUBIC = 0.044715


#: erf(x) / x as a fraction of polynomials in x², the highest power first, within 2e-8 of it for |x| <= _ONE, where
#: float32 has erf(x) = 1: fitted with the relative error weighted to be even.
_ONE = 3.92
_ABOVE = (
    2.0502732488925123e-06, 0.000284867978361051, 0.0037648091040246422, 0.052746214464113685, 0.1903871430976397,
    1.1283791463993453,
)  # fmt: skip
_BELOW = (
    3.8092889936154406e-05, 0.001162346710076552, 0.014967586044847152, 0.11410116848751736, 0.5020589567601521, 1.0,
)  # fmt: skip


def _polynomial(s: Operand, factors: Sequence[float]) -> Operand:
    """A polynomial by its factors, that of the highest power first."""
    t = s * factors[0]
    t += factors[1]
    for factor in factors[2:]:
        t *= s
        t += factor
    return t


def _erf_float32(x: Operand) -> Operand:
    """erf within four rounding errors of float32; x is an array or a value of a formula."""
    v = np.minimum(np.maximum(x, -_ONE), _ONE)
    s = v * v
    t = _polynomial(s, _ABOVE)
    t *= v
    t /= _polynomial(s, _BELOW)
    return np.minimum(np.maximum(t, -1), 1)


def error_function(x: Array, out: Array) -> None:
    """Write erf of each element of an array that is not float32."""
    if x.dtype == np.float64:
        out[...] = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)
    else:
        np.copyto(out, _erf_float32(x.astype(np.float32)), casting="unsafe")


def _erf(x: Operand) -> Operand:
    return _erf_float32(x) if x.array.dtype == np.float32 else x.through(error_function)


def _bell(x: Operand, factor: float, width: float) -> Operand:
    """factor · exp(-width · x²)."""
    t = x * x * -width
    np.exp(t, out=t)
    t *= factor
    return t


def _below(x: Operand) -> Operand:
    """(1 + erf(x / √2)) / 2: the cumulative normal distribution at x."""
    t = _erf(x * math.sqrt(0.5))
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
    "lgamma": Row("the logarithm of |Γ(X)|", lambda x: x.through(lgamma), "dOut · digamma(X)", ("X",),
                  lambda x, g: g * x.through(digamma), ("[0.5, 5.0]", "[0.5724, 3.1781]"), source="Paddle's lgamma_op",
                  is_series=True),
    "digamma": Row("the slope of the logarithm of Γ(X)", lambda x: x.through(digamma),
                   "dOut times the slope of digamma at X", ("X",),
                   lambda x, g: g * x.through(trigamma), ("[0.5, 5.0]", "[-1.9635,  1.5061]"),
                   source="Paddle's digamma_op", is_series=True),
    "logit": Row("log(X / (1 - X)), with X limited to [eps, 1 - eps]", lambda x: np.log(np.divide(*_limited(x))),
                 "dOut / (X · (1 - X)), 0 where X was limited", ("X",), _logit_grad,
                 ("[0.5, 0.8]", "[0.    , 1.3863]"),
                 {"eps": Attr("float", 1e-6, "how far X is kept from 0 and 1; 0 for no limits", ge=0)},
                 source="Paddle's logit_op"),
    "erf": Row("2/√π · ∫ exp(-t²) dt from 0 to X", _erf, "dOut · 2/√π · exp(-X²)",
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
