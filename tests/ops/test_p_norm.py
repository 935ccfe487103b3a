"""p_norm, dist, logsumexp and frobenius_norm."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, Forward, distinct, family, values
from tests.tools.refused import refused

X, Y = distinct(2, 3, 4), values(3, 4, seed=1) * 0.03
SIZES = np.abs(X)


def gap(power):
    return np.array([(np.abs(X - Y) ** power).sum() ** (1 / power)])


family(
    globals(),
    Differentiable,
    {
        "p_norm": {"inputs": {"X": X}, "outputs": {"Out": np.sqrt((X * X).sum(-1))}},
        "p_norm/sum": {
            "inputs": {"X": X}, "attrs": {"porder": 1.0, "keepdim": True},
            "outputs": {"Out": SIZES.sum(-1, keepdims=True)},
        },
        "p_norm/cubes": {
            "inputs": {"X": X}, "attrs": {"porder": 3.0, "axis": 0}, "outputs": {"Out": (SIZES**3).sum(0) ** (1 / 3)},
        },
        "p_norm/half": {
            "inputs": {"X": X}, "attrs": {"porder": 0.5, "axis": 1}, "outputs": {"Out": (SIZES**0.5).sum(1) ** 2},
        },
        "p_norm/largest": {
            "inputs": {"X": X}, "attrs": {"porder": np.inf, "axis": 1}, "outputs": {"Out": SIZES.max(1)},
        },
        "p_norm/smallest": {
            "inputs": {"X": X}, "attrs": {"porder": -np.inf, "axis": 1}, "outputs": {"Out": SIZES.min(1)},
        },
        "p_norm/count": {
            "inputs": {"X": X}, "attrs": {"porder": 0.0}, "outputs": {"Out": np.full((2, 3), 4.0)},
        },
        "p_norm/vector": {
            "inputs": {"X": X}, "attrs": {"asvector": True}, "outputs": {"Out": np.sqrt([(X * X).sum()])},
        },
        "p_norm/vector_kept": {
            "inputs": {"X": X}, "attrs": {"asvector": True, "keepdim": True},
            "outputs": {"Out": np.sqrt((X * X).sum((0, 1, 2), keepdims=True))},
        },
        "dist": {"inputs": {"X": X, "Y": Y}, "outputs": {"Out": gap(2)}},
        "dist/swapped": {"inputs": {"X": Y, "Y": X}, "attrs": {"p": 3.0}, "outputs": {"Out": gap(3)}},
        "dist/sum": {"inputs": {"X": X, "Y": Y}, "attrs": {"p": 1.0}, "outputs": {"Out": gap(1)}},
        "dist/largest": {
            "inputs": {"X": X, "Y": Y}, "attrs": {"p": np.inf}, "outputs": {"Out": np.array([np.abs(X - Y).max()])},
        },
        "logsumexp": {"inputs": {"X": X}, "outputs": {"Out": np.log(np.exp(X).sum(0))}},
        "logsumexp/kept": {
            "inputs": {"X": X}, "attrs": {"axis": [0, -1], "keepdim": True},
            "outputs": {"Out": np.log(np.exp(X).sum((0, 2), keepdims=True))},
        },
        "logsumexp/all": {
            "inputs": {"X": X}, "attrs": {"reduce_all": True}, "outputs": {"Out": np.log([np.exp(X).sum()])},
        },
        "frobenius_norm": {"inputs": {"X": X}, "outputs": {"Out": np.sqrt((X * X).sum(0))}},
        "frobenius_norm/kept": {
            "inputs": {"X": X}, "attrs": {"dim": [1, 2], "keep_dim": True},
            "outputs": {"Out": np.sqrt((X * X).sum((1, 2), keepdims=True))},
        },
        "frobenius_norm/all": {
            "inputs": {"X": X}, "attrs": {"reduce_all": True}, "outputs": {"Out": np.sqrt([(X * X).sum()])},
        },
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "logsumexp/limits": {
            "inputs": {"X": np.array([[-np.inf, -np.inf], [1000.0, -np.inf], [np.inf, 0.0]])}, "attrs": {"axis": [1]},
            "outputs": {"Out": np.array([-np.inf, 1000.0, np.inf])},
        },
        "p_norm/count_zeros": {
            "inputs": {"X": np.array([[0.0, 2.0, 0.0]])}, "attrs": {"porder": 0.0}, "outputs": {"Out": np.array([1.0])},
        },
    },
)  # fmt: skip


def test_the_gradient_of_a_length_of_0_is_0():
    none = np.zeros((1, 2))
    for op, attrs in (("p_norm", {"porder": 3.0, "axis": 1}), ("frobenius_norm", {"dim": [1]})):
        inputs = {"X": none, "Out": np.zeros(1), "Out@GRAD": np.ones(1)}
        assert run_op(op + "_grad", inputs, attrs, ["X@GRAD"])["X@GRAD"].tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("p_norm", {"X": X}, {"axis": 3}, r"Attr\(axis\) of p_norm must name a dimension"),
        ("dist", {"X": X, "Y": np.ones((2, 2))}, {}, "of dist do not fit"),
        ("logsumexp", {"X": X}, {"axis": [-4]}, "must name a dimension"),
        ("frobenius_norm", {"X": X}, {"dim": [3]}, "dim index should be in the range"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)
