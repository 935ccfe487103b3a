"""Products of matrices and vectors of other kinds than mul and matmul, inverses and factors."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, Forward, family, values
from tests.tools.refused import refused

A, B, V, W = values(3, 4, seed=1), values(4, 5, seed=2), values(4, seed=3), values(3, seed=4)
BATCH, OTHER, DEEP = values(2, 3, 4, seed=5), values(2, 4, 5, seed=6), values(2, 2, 4, 3, seed=7)
SUM, ROW = values(3, 5, seed=8), values(5, seed=9)
P, Q = values(4, 3, seed=10), values(4, 3, seed=11)
REGULAR = values(2, 3, 3, seed=12) + 3 * np.eye(3)
DEFINITE = REGULAR @ REGULAR.swapaxes(-1, -2)


CUBE = values(2, 4, 5, seed=13)


def moved(x, y):
    """Each row of X moved by the weights of Y, element by element."""
    (n, m), k = x.shape, y.shape[1]
    half = k // 2
    return np.array([
        [sum(x[r, (i + j) % m] * y[r, j + half] for j in range(-half, half + 1)) for i in range(m)] for r in range(n)
    ])  # fmt: skip


def swapped(x):
    return x.swapaxes(-1, -2).copy()


family(
    globals(),
    Differentiable,
    {
        "matmul_v2": {"inputs": {"X": A, "Y": B}, "outputs": {"Out": A @ B}},
        "matmul_v2/batches": {"inputs": {"X": BATCH, "Y": OTHER}, "outputs": {"Out": BATCH @ OTHER}},
        "matmul_v2/transposed": {
            "inputs": {"X": swapped(BATCH), "Y": swapped(OTHER)}, "attrs": {"trans_x": True, "trans_y": True},
            "outputs": {"Out": BATCH @ OTHER},
        },
        "matmul_v2/repeated": {"inputs": {"X": BATCH, "Y": B}, "outputs": {"Out": BATCH @ B}},
        "matmul_v2/both_repeated": {
            "inputs": {"X": BATCH[:1], "Y": DEEP}, "outputs": {"Out": BATCH[:1] @ DEEP},
        },
        "matmul_v2/column": {"inputs": {"X": A, "Y": V}, "outputs": {"Out": A @ V}},
        "matmul_v2/row": {"inputs": {"X": V, "Y": B}, "outputs": {"Out": V @ B}},
        "matmul_v2/vectors": {"inputs": {"X": V, "Y": V + 1}, "outputs": {"Out": np.array([V @ (V + 1)])}},
        "bmm": {"inputs": {"X": BATCH, "Y": OTHER}, "outputs": {"Out": BATCH @ OTHER}},
        "addmm": {"inputs": {"Input": SUM, "X": A, "Y": B}, "outputs": {"Out": SUM + A @ B}},
        "addmm/factors": {
            "inputs": {"Input": SUM[:, :1], "X": A, "Y": B}, "attrs": {"Alpha": 2.0, "Beta": 0.5},
            "outputs": {"Out": 0.5 * SUM[:, :1] + 2 * (A @ B)},
        },
        "addmm/row": {"inputs": {"Input": ROW, "X": A, "Y": B}, "outputs": {"Out": ROW + A @ B}},
        "mv": {"inputs": {"X": A, "Vec": V}, "outputs": {"Out": A @ V}},
        "kron": {"inputs": {"X": A, "Y": P}, "outputs": {"Out": np.kron(A, P)}},
        "kron/ranks": {"inputs": {"X": V, "Y": BATCH}, "outputs": {"Out": np.kron(V, BATCH)}},
        "cross": {"inputs": {"X": P, "Y": Q}, "attrs": {"dim": 1}, "outputs": {"Out": np.cross(P, Q)}},
        "cross/first": {"inputs": {"X": P.T.copy(), "Y": Q.T.copy()}, "outputs": {"Out": np.cross(P.T, Q.T, axis=0)}},
        "bilinear_tensor_product": {
            "inputs": {"X": A, "Y": SUM, "Weight": CUBE}, "outputs": {"Out": np.einsum("nd,sde,ne->ns", A, CUBE, SUM)},
        },
        "bilinear_tensor_product/bias": {
            "inputs": {"X": A, "Y": SUM, "Weight": CUBE, "Bias": V[None, :2]},
            "outputs": {"Out": np.einsum("nd,sde,ne->ns", A, CUBE, SUM) + V[:2]},
        },
        "conv_shift": {"inputs": {"X": SUM, "Y": P[:3]}, "outputs": {"Out": moved(SUM, P[:3])}},
        "conv_shift/one": {"inputs": {"X": SUM, "Y": P[:3, :1]}, "outputs": {"Out": SUM * P[:3, :1]}},
        "inverse": {"inputs": {"Input": REGULAR}, "outputs": {"Output": np.linalg.inv(REGULAR)}},
    },
)  # fmt: skip
TestInverse.rtol = {"float32": 1e-4, "float64": 1e-10}  # noqa: F821  (`family` has made it)
family(
    globals(),
    Forward,
    {
        "cholesky": {"inputs": {"X": DEFINITE}, "outputs": {"Out": np.linalg.cholesky(DEFINITE)}},
        "cholesky/upper": {
            "inputs": {"X": DEFINITE}, "attrs": {"upper": True},
            "outputs": {"Out": swapped(np.linalg.cholesky(DEFINITE))},
        },
        "matmul_v2/whole": {
            "inputs": {"X": np.arange(6).reshape(2, 3), "Y": np.arange(3)}, "outputs": {"Out": np.array([5, 14])},
        },
        "cross/whole": {"inputs": {"X": np.array([1, 0, 0]), "Y": np.array([0, 1, 0])},
                        "outputs": {"Out": np.array([0, 0, 1])}},
    },
)  # fmt: skip


@pytest.mark.parametrize("upper", [False, True])
def test_the_gradient_of_cholesky_along_symmetric_directions(upper):
    """Only one triangle of X is read, so its elements cannot be moved one by one."""
    out = run_op("cholesky", {"X": DEFINITE}, {"upper": upper})["Out"]
    weights = values(2, 3, 3, seed=20)
    inputs = {"Out": out, "Out@GRAD": weights, "X": DEFINITE}
    dx = run_op("cholesky_grad", inputs, {"upper": upper}, ["X@GRAD"])["X@GRAD"]
    np.testing.assert_allclose(dx, dx.swapaxes(-1, -2), 1e-12)
    for seed in range(4):
        direction = values(2, 3, 3, seed=30 + seed)
        direction = direction + direction.swapaxes(-1, -2)
        ends = [run_op("cholesky", {"X": DEFINITE + h * direction}, {"upper": upper})["Out"] for h in (1e-5, -1e-5)]
        slope = ((ends[0] - ends[1]) * weights).sum() / 2e-5
        np.testing.assert_allclose((dx * direction).sum(), slope, 1e-6)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("matmul_v2", {"X": A, "Y": A}, {}, "width must be equal"),
        ("matmul_v2", {"X": BATCH, "Y": np.zeros((3, 4, 5))}, {}, "batches of X and Y of matmul_v2 do not fit"),
        ("bmm", {"X": A, "Y": B}, {}, r"must have the shape \[n, rows, k\]"),
        ("bmm", {"X": BATCH, "Y": OTHER[:1]}, {}, r"must have the shape \[n, k, columns\]"),
        ("addmm", {"Input": SUM, "X": A, "Y": A}, {}, r"expected: +\[k, n\], k = "),
        ("addmm", {"Input": SUM[:2], "X": A, "Y": B}, {}, "cannot be added"),
        ("mv", {"X": A, "Vec": W}, {}, r"expected: +\[n\], n = "),
        ("mv", {"X": A, "Vec": B}, {}, r"Input\(Vec\) of mv must have the shape \[n\]"),
        ("cross", {"X": P, "Y": A}, {}, "must have the same shape"),
        ("cross", {"X": B, "Y": B}, {}, "No dimension of Input"),
        ("cross", {"X": P, "Y": Q}, {"dim": 0}, "vectors of three numbers"),
        ("bilinear_tensor_product", {"X": A, "Y": B, "Weight": CUBE}, {}, r"must have the shape \[n, e\]"),
        ("bilinear_tensor_product", {"X": A, "Y": A, "Weight": CUBE}, {}, "Weight. of bilinear_tensor_product"),
        ("bilinear_tensor_product", {"X": A, "Y": SUM, "Weight": CUBE, "Bias": V[None]}, {}, "Bias. of bilinear"),
        ("conv_shift", {"X": A, "Y": B}, {}, r"must have the shape \[n, k\]"),
        ("conv_shift", {"X": A, "Y": A}, {}, "must be odd"),
        ("conv_shift", {"X": A, "Y": SUM}, {}, "must be odd and not larger"),
        ("inverse", {"Input": A}, {}, r"must have the shape \[…, n, n\]"),
        ("cholesky", {"X": A}, {}, r"must have the shape \[…, n, n\]"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)


@pytest.mark.parametrize(
    ("op", "slot", "message"), [("inverse", "Input", "is singular"), ("cholesky", "X", "is not positive definite")]
)
def test_matrices_that_cannot_be_taken_apart(op, slot, message):
    with refused(EnforceNotMet, message):
        run_op(op, {slot: np.zeros((2, 2))})


class TestCholeskyInColumns(OpTest):
    op_type = "cholesky"
    inputs = {"X": DEFINITE[0]}
    outputs = {"Out": lambda out: np.testing.assert_allclose(out @ out.T, DEFINITE[0], 1e-12)}

    def test_output(self):
        self.check_output()
