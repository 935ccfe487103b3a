"""Triangles, diagonals and traces."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from fluidnb_kernels.tensor.diagonals import diagonal_view
from tests.ops.cases import Differentiable, Forward, family, values
from tests.tools.refused import refused

V, A, CUBE = values(3, seed=1), values(3, 4, seed=2), values(2, 3, 4, seed=3)
WHOLE = np.arange(12).reshape(3, 4)


def embedded(x, offset, dim1, dim2):
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n))
    for i in range(x.shape[-1]):
        out[..., i + max(0, -offset), i + max(0, offset)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2)).copy()


family(
    globals(),
    Differentiable,
    {
        "tril_triu": {"inputs": {"X": CUBE}, "outputs": {"Out": np.triu(CUBE)}},
        "tril_triu/lower": {
            "inputs": {"X": CUBE}, "attrs": {"lower": True, "diagonal": -1}, "outputs": {"Out": np.tril(CUBE, -1)},
        },
        "tril_triu/above": {"inputs": {"X": A}, "attrs": {"diagonal": 2}, "outputs": {"Out": np.triu(A, 2)}},
        "diag_v2": {"inputs": {"X": V}, "outputs": {"Out": np.diag(V)}},
        "diag_v2/filled": {
            "inputs": {"X": V}, "attrs": {"offset": -1, "padding_value": 5.0},
            "outputs": {"Out": np.where(np.eye(4, k=-1) > 0, np.diag(V, -1), 5.0)},
        },
        "diag_v2/taken": {"inputs": {"X": A}, "attrs": {"offset": 1}, "outputs": {"Out": np.diagonal(A, 1).copy()}},
        "diag_v2/below": {"inputs": {"X": A}, "attrs": {"offset": -2}, "outputs": {"Out": np.diagonal(A, -2).copy()}},
        "diag_embed": {"inputs": {"Input": A}, "outputs": {"Out": embedded(A, 0, -2, -1)}},
        "diag_embed/axes": {
            "inputs": {"Input": A}, "attrs": {"offset": 1, "dim1": 0, "dim2": 2},
            "outputs": {"Out": embedded(A, 1, 0, 2)},
        },
        "diag_embed/swapped": {
            "inputs": {"Input": A}, "attrs": {"offset": -2, "dim1": 2, "dim2": 0},
            "outputs": {"Out": embedded(A, -2, 2, 0)},
        },
        "trace": {"inputs": {"Input": A}, "outputs": {"Out": np.array([np.trace(A)])}},
        "trace/axes": {
            "inputs": {"Input": CUBE}, "attrs": {"offset": 1, "axis1": 2, "axis2": 1},
            "outputs": {"Out": np.trace(CUBE, 1, 1, 2)},
        },
        "trace/below": {"inputs": {"Input": CUBE}, "attrs": {"offset": -1}, "outputs": {"Out": np.trace(CUBE, -1)}},
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "eye": {
            "attrs": {"num_rows": 2, "num_columns": 3, "dtype": "int64"}, "outputs": {"Out": np.eye(2, 3, dtype=int)},
        },
        "eye/square": {"attrs": {"num_rows": 3}, "outputs": {"Out": np.eye(3, dtype="float32")}},
        "tril_triu/whole": {"inputs": {"X": WHOLE}, "outputs": {"Out": np.triu(WHOLE)}},
        "diag_v2/whole": {"inputs": {"X": WHOLE}, "outputs": {"Out": np.diagonal(WHOLE).copy()}},
        "trace/whole": {"inputs": {"Input": WHOLE}, "outputs": {"Out": np.array([np.trace(WHOLE)])}},
    },
)  # fmt: skip


def test_a_triangle_drops_what_is_not_a_number():
    x = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert run_op("tril_triu", {"X": x}, {"lower": True})["Out"].tolist() == [[1, 0], [2, 3]]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("tril_triu", {"X": V}, {}, r"must have the shape \[…, m, n\]"),
        ("diag_v2", {"X": CUBE}, {}, r"must have the shape \[n\] or \[m, n\]"),
        ("diag_embed", {"Input": A}, {"dim1": 1, "dim2": 1}, "must differ"),
        ("diag_embed", {"Input": A}, {"dim1": 3}, "must name a dimension"),
        ("trace", {"Input": V}, {}, r"must have the shape \[m, n, …\]"),
        ("trace", {"Input": A}, {"axis1": -1}, "must differ"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)


@pytest.mark.parametrize("offset", [-(2**31), 2**31 - 1, -4, 4])
def test_an_offset_outside(offset: int) -> None:
    """numpy's own diagonal leaves its memory at an offset of -2 ** 31."""
    assert diagonal_view(np.ones((3, 4)), offset).size == 0
