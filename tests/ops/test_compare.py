"""Comparisons and logic."""

import numpy as np

from tests.ops.cases import Forward, family

X, Y = np.array([[1, 2, 3], [3, 2, 1]]), np.array([2, 2, 2])
P, Q = np.array([True, True, False]), np.array([True, False, False])
COMPARISONS = {
    "less_than": np.less,
    "less_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}
LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}

family(
    globals(),
    Forward,
    {op: {"inputs": {"X": X, "Y": Y}, "outputs": {"Out": f(X, Y)}} for op, f in COMPARISONS.items()}
    | {f"{op}/floats": {"inputs": {"X": X * 1.0, "Y": Y[:1] * 1.0}, "outputs": {"Out": f(X, Y)}}
       for op, f in COMPARISONS.items()}
    | {"less_than/head": {"inputs": {"X": X, "Y": Y[:2]}, "attrs": {"axis": 0}, "outputs": {"Out": X < 2}}}
    | {op: {"inputs": {"X": P, "Y": Q}, "outputs": {"Out": f(P, Q)}} for op, f in LOGIC.items()}
    | {"logical_not": {"inputs": {"X": P}, "outputs": {"Out": ~P}}}
    | {"logical_not/numbers": {"inputs": {"X": X - 2.0}, "outputs": {"Out": X == 2}}},
)  # fmt: skip
