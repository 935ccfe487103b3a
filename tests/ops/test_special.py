"""Inverse hyperbolic functions, the gamma function's logarithm, logit and trunc."""

import math

import numpy as np
import pytest

from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, distinct, family, values

BOTH = distinct(3, 4)
LARGE = values(2, 3, low=1.3, high=4.0)
SMALL = values(2, 3, low=-0.9, high=0.9)
SHARE = values(2, 3, low=0.1, high=0.9)
GAMMA = np.concatenate([values(6, low=0.1, high=12.0), [-0.3, -1.6, -2.2, 40.0]])
EULER = 0.5772156649015329


def digamma(x):
    """By the limit that defines it: the slope of the logarithm of the gamma function."""
    h = 1e-5
    return np.array([(8 * (math.lgamma(v + h) - math.lgamma(v - h)) - math.lgamma(v + 2 * h) + math.lgamma(v - 2 * h))
                     / (12 * h) for v in x])  # fmt: skip


family(
    globals(),
    Differentiable,
    {
        "acosh": {"inputs": {"X": LARGE}, "outputs": {"Out": np.log(LARGE + np.sqrt(LARGE**2 - 1))}},
        "asinh": {"inputs": {"X": BOTH}, "outputs": {"Out": np.log(BOTH + np.sqrt(BOTH**2 + 1))}},
        "atanh": {"inputs": {"X": SMALL}, "outputs": {"Out": np.log((1 + SMALL) / (1 - SMALL)) / 2}},
        "trunc": {"inputs": {"X": BOTH * 3.3}, "outputs": {"Out": np.sign(BOTH) * np.floor(np.abs(BOTH * 3.3))}},
        "lgamma": {"inputs": {"X": GAMMA}, "outputs": {"Out": np.array([math.lgamma(v) for v in GAMMA])}},
        "digamma": {"inputs": {"X": GAMMA}, "outputs": {"Out": digamma(GAMMA)}},
        "logit": {"inputs": {"X": SHARE}, "outputs": {"Out": np.log(SHARE) - np.log1p(-SHARE)}},
        "logit/limits": {
            "inputs": {"X": np.array([-0.5, 0.1, 0.3, 0.7, 1.5])}, "attrs": {"eps": 0.25},
            "outputs": {"Out": np.log([1 / 3, 1 / 3, 3 / 7, 7 / 3, 3])},
        },
        "logit/no_limits": {
            "inputs": {"X": SHARE}, "attrs": {"eps": 0.0}, "outputs": {"Out": np.log(SHARE) - np.log1p(-SHARE)},
        },
    },
)  # fmt: skip
TestDigamma.rtol = {"float32": 1e-4, "float64": 1e-7}  # noqa: F821  (the expected values are differences)
TestLgamma.rtol = {"float32": 1e-5, "float64": 1e-12}  # noqa: F821


def test_digamma_where_its_value_is_known():
    x = np.array([1.0, 2.0, 0.5, 1.0 / 3])
    known = [-EULER, 1 - EULER, -EULER - 2 * np.log(2), -EULER - np.pi / (2 * np.sqrt(3)) - 1.5 * np.log(3)]
    np.testing.assert_allclose(run_op("digamma", {"X": x})["Out"], known, 1e-13)


def test_the_slope_of_digamma_where_it_is_known():
    got = run_op("digamma_grad", {"X": [1.0, 0.5], "Out@GRAD": [1.0, 2.0]}, {}, ["X@GRAD"])["X@GRAD"]
    np.testing.assert_allclose(got, [np.pi**2 / 6, np.pi**2], 1e-13)


def test_gamma_at_its_poles_and_far_out():
    got = run_op("lgamma", {"X": [0.0, -1.0, -7.0, np.inf, 1e100]})["Out"]
    assert got.tolist() == pytest.approx([np.inf, np.inf, np.inf, np.inf, math.lgamma(1e100)])


def test_trunc_of_whole_numbers():
    assert run_op("trunc", {"X": np.array([-3, 4])})["Out"].tolist() == [-3, 4]


def test_an_eps_of_logit_below_0_is_refused():
    with pytest.raises(ValueError, match="attribute eps of logit"):
        run_op("logit", {"X": [0.5]}, {"eps": -1.0})
