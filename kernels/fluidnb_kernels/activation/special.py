"""The logarithm of the gamma function, its slope, and logit: one row for each operator, its gradient beside it.

Numpy has no gamma function. The functions here move X up to numbers where Stirling's series is exact, and use the
reflection at 1/2 for those below it; they compute in float64 whatever the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder
from fluidnb_kernels.activation.table import Row, define, number
from fluidnb_kernels.emit import apply

Array = Any

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
    """Which numbers are below 1/2, all of them reflected above it, and how far each is from a whole number."""
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
    """Write the logarithm of |Γ(x)|.

    Args:
        x: any shape; infinite where it is a whole number below 1.
        out: the same shape, written.

    Example:
        >>> y = np.zeros(2); lgamma(np.array([1.0, 5.0]), y); np.exp(y).round(9)
        array([ 1., 24.])
    """
    with np.errstate(all="ignore"):  # poles and infinite numbers
        low, up, fraction = _apart(x)
        z, passed = _climb(up, np.log)
        value = (z - 0.5) * (np.log(z) - 1) + 0.5 * np.log(2 * np.pi) - 0.5 + _series(z, _LGAMMA) - passed
        mirrored = np.log(np.pi / np.abs(np.sin(np.pi * fraction))) - value
        np.copyto(out, np.where(low, mirrored, value), casting="same_kind")


def digamma(x: Array, out: Array) -> None:
    """Write the slope of the logarithm of Γ(x).

    Args:
        out: the same shape, written; not a number where x is a whole number below 1.

    Example:
        >>> y = np.zeros(2); digamma(np.array([1.0, 2.0]), y); y.round(4)
        array([-0.5772,  0.4228])
    """
    with np.errstate(all="ignore"):  # poles and infinite numbers
        low, up, fraction = _apart(x)
        z, passed = _climb(up, np.reciprocal)
        value = np.log(z) - 0.5 / z + _series(z, _DIGAMMA) / z - passed
        mirrored = value - np.pi / np.tan(np.pi * fraction)
        np.copyto(out, np.where(low, np.where(fraction == 0, np.nan, mirrored), value), casting="same_kind")


def trigamma(x: Array, out: Array) -> None:
    """Write the slope of `digamma`.

    Args:
        x: any shape; infinite where it is a whole number below 1.
        out: the same shape, written.

    Example:
        >>> y = np.zeros(1); trigamma(np.array([1.0]), y); bool(abs(y[0] - np.pi**2 / 6) < 1e-12)
        True
    """
    with np.errstate(all="ignore"):  # poles and infinite numbers
        low, up, fraction = _apart(x)
        z, passed = _climb(up, lambda n: 1 / (n * n))
        value = 1 / z + (0.5 + _series(z, _BERNOULLI)) / (z * z) + passed
        mirrored = (np.pi / np.sin(np.pi * fraction)) ** 2 - value
        np.copyto(out, np.where(low, mirrored, value), casting="same_kind")


def _lgamma(b: Binder, x: Array, out: Array) -> None:
    b(lgamma, x, out)


def _lgamma_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    slope = b.like(x)
    b(digamma, x, slope)
    b(np.multiply, g, slope, out=dx)


def _digamma(b: Binder, x: Array, out: Array) -> None:
    b(digamma, x, out)


def _digamma_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    slope = b.like(x)
    b(trigamma, x, slope)
    b(np.multiply, g, slope, out=dx)


def _bounds(b: Binder, x: Array) -> tuple[Array, Array, Array]:
    """eps, 1 - eps and 1 as constants."""
    eps = b.attr("eps", 1e-6)
    return number(b, "eps", x.dtype, 1e-6), b.const(1 - eps, x.dtype), b.const(1, x.dtype)


def _inside(b: Binder, x: Array) -> tuple[Array, Array]:
    """Emit X limited to [eps, 1 - eps], and 1 - that."""
    low, high, one = _bounds(b, x)
    inner = apply(b, np.minimum, apply(b, np.maximum, x, low), high) if b.attr("eps", 1e-6) else x
    return inner, apply(b, np.subtract, one, inner)


def _logit(b: Binder, x: Array, out: Array) -> None:
    b(np.log, apply(b, np.divide, *_inside(b, x)), out=out)


def _logit_grad(b: Binder, x: Array, g: Array, dx: Array) -> None:
    low, high, _ = _bounds(b, x)
    slope = apply(b, np.divide, g, apply(b, np.multiply, *_inside(b, x)))
    free = apply(b, np.logical_and, apply(b, np.greater_equal, x, low), apply(b, np.less_equal, x, high))
    b(np.multiply, slope, free, out=dx)


ROWS = {
    "lgamma": Row("the logarithm of |Γ(X)|", _lgamma, "dOut · digamma(X)", ("X",), _lgamma_grad,
                  ("[0.5, 5.0]", "[0.5724, 3.1781]"), source="Paddle's lgamma_op"),
    "digamma": Row("the slope of the logarithm of Γ(X)", _digamma, "dOut times the slope of digamma at X", ("X",),
                   _digamma_grad, ("[0.5, 5.0]", "[-1.9635,  1.5061]"), source="Paddle's digamma_op"),
    "logit": Row("log(X / (1 - X)), with X limited to [eps, 1 - eps]", _logit,
                 "dOut / (X · (1 - X)), 0 where X was limited", ("X",), _logit_grad,
                 ("[0.5, 0.8]", "[0.    , 1.3863]"),
                 {"eps": Attr("float", 1e-6, "how far X is kept from 0 and 1; 0 for no limits", ge=0)},
                 source="Paddle's logit_op"),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
