"""Functions of one tensor, and softmax."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, distinct, family, values

BOTH = distinct(3, 4)  # either sign, away from 0 and from whole numbers
POSITIVE = values(2, 3, low=0.3, high=3.0)

FUNCTIONS = {
    "relu": (BOTH, lambda x: np.maximum(x, 0)),
    "sigmoid": (BOTH, lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (BOTH, np.tanh),
    "exp": (BOTH, np.exp),
    "log": (POSITIVE, np.log),
    "sqrt": (POSITIVE, np.sqrt),
    "rsqrt": (POSITIVE, lambda x: 1 / np.sqrt(x)),
    "square": (BOTH, lambda x: x * x),
    "abs": (BOTH, np.abs),
    "reciprocal": (POSITIVE, lambda x: 1 / x),
    "sin": (BOTH, np.sin),
    "cos": (BOTH, np.cos),
    "floor": (BOTH, np.floor),
    "ceil": (BOTH, np.ceil),
    "round": (BOTH + 0.02, lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5)),
    "sign": (BOTH, np.sign),
}

family(
    globals(),
    Differentiable,
    {op: {"inputs": {"X": x}, "outputs": {"Out": f(x)}} for op, (x, f) in FUNCTIONS.items()},
)
family(
    globals(),
    Differentiable,
    {f"{op}/sequences": {"inputs": {"X": (x.reshape(-1, 1), [[1, x.size - 1]])},
                         "outputs": {"Out": (f(x).reshape(-1, 1), [[1, x.size - 1]])}}
     for op, (x, f) in FUNCTIONS.items() if op in ("relu", "tanh", "square")},
)  # fmt: skip


def _softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


X = values(2, 3, 4)
family(
    globals(),
    Differentiable,
    {
        "softmax": {"inputs": {"X": X}, "outputs": {"Out": _softmax(X, -1)}},
        "softmax/axis": {"inputs": {"X": X}, "attrs": {"axis": 1}, "outputs": {"Out": _softmax(X, 1)}},
        "softmax/vector": {"inputs": {"X": X[0, 0]}, "outputs": {"Out": _softmax(X[0, 0], 0)}},
        "softmax/width_one": {"inputs": {"X": X[:, :, :1]}, "outputs": {"Out": np.ones((2, 3, 1))}},
    },
)


def test_sigmoid_of_large_numbers():
    assert run_op("sigmoid", {"X": [-1000.0, 1000.0]})["Out"].tolist() == [0, 1]


def test_softmax_of_large_numbers():
    got = run_op("softmax", {"X": [[1e4, 0.0, -1e4]]})["Out"]
    assert got[0, 0] == 1 and (got[0, 1:] < 1e-27).all()


def test_softmax_over_a_dimension_that_is_not_there():
    with pytest.raises(RuleError, match="must name a dimension"):
        run_op("softmax", {"X": np.ones((2, 2))}, {"axis": 2})


def test_round_halves_away_from_zero():
    assert run_op("round", {"X": [-2.5, -0.5, 0.5, 1.5]})["Out"].tolist() == [-3, -1, 1, 2]
