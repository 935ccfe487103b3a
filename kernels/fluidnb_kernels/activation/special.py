"""The logarithm of the gamma function, its slope, and logit: one row for each operator, its gradient beside it.

Numpy has no gamma function. The functions here move X up to numbers where Stirling's series is exact, and use the
reflection at 1/2 for those below it; they compute in float64 whatever the dtype.
"""

from __future__ import annotations

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


ROWS = {
    "lgamma": Row("the logarithm of |Γ(X)|", lambda x: x.through(lgamma), "dOut · digamma(X)", ("X",),
                  lambda x, g: g * x.through(digamma), ("[0.5, 5.0]", "[0.5724, 3.1781]"), source="Paddle's lgamma_op"),
    "digamma": Row("the slope of the logarithm of Γ(X)", lambda x: x.through(digamma),
                   "dOut times the slope of digamma at X", ("X",),
                   lambda x, g: g * x.through(trigamma), ("[0.5, 5.0]", "[-1.9635,  1.5061]"),
                   source="Paddle's digamma_op"),
    "logit": Row("log(X / (1 - X)), with X limited to [eps, 1 - eps]", lambda x: np.log(np.divide(*_limited(x))),
                 "dOut / (X · (1 - X)), 0 where X was limited", ("X",), _logit_grad,
                 ("[0.5, 0.8]", "[0.    , 1.3863]"),
                 {"eps": Attr("float", 1e-6, "how far X is kept from 0 and 1; 0 for no limits", ge=0)},
                 source="Paddle's logit_op"),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
