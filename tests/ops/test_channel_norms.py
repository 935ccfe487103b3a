"""Normalisation over channels around, over each channel, by a singular value, by what has been seen."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, Forward, family, values
from tests.ops.images import last, normal

X = values(2, 5, 3, 4)
SCALE, BIAS = values(5, seed=1), values(5, seed=2)
WEIGHT = values(4, 3, 2, seed=3)
EPSILON = float(np.float32(1e-5))
LESS = float(np.float32(1e-4))


def around(x, before, behind, k=1.0, alpha=0.5):
    """By how much each channel is divided, before the power."""
    out = np.zeros_like(x)
    for c in range(x.shape[1]):
        out[:, c] = k + alpha * (x[:, max(c - before, 0) : c + behind + 1] ** 2).sum(1)
    return out


def lrn(before, behind, n, channels_last=False):
    middle = around(X, before, behind)
    out = X * middle**-0.75
    attrs = {"n": n, "k": 1.0, "alpha": 0.5, "beta": 0.75}
    if channels_last:
        return {"inputs": {"X": last(X)}, "attrs": {**attrs, "data_format": "NHWC"},
                "outputs": {"Out": last(out), "MidOut": last(middle)}, "loss": ("Out",)}  # fmt: skip
    return {"inputs": {"X": X}, "attrs": attrs, "outputs": {"Out": out, "MidOut": middle}, "loss": ("Out",)}


def instance(x, scale=1.0, bias=0.0, **inputs):
    axes, tail = tuple(range(2, x.ndim)), [1] * (x.ndim - 2)
    stretched = [v if isinstance(v, float) else v.reshape(-1, *tail) for v in (scale, bias)]
    return {
        "inputs": {"X": x, **inputs}, "loss": ("Y",),
        "outputs": {
            "Y": normal(x, axes) * stretched[0] + stretched[1], "SavedMean": x.mean(axes).ravel(),
            "SavedVariance": 1 / np.sqrt(x.var(axes) + EPSILON).ravel(),
        },
    }  # fmt: skip


def spectral(w, dim, steps, u, v):
    """The weight over the value of some steps of power iteration."""
    rows = np.moveaxis(w, dim, 0).reshape(w.shape[dim], -1)
    for _ in range(steps):
        v = rows.T @ u / np.linalg.norm(rows.T @ u)
        u = rows @ v / np.linalg.norm(rows @ v)
    return w / (u @ rows @ v)


U, V, V1 = values(4, seed=4), values(6, seed=5), values(8, seed=6)
U1 = values(3, seed=7)
#: enough steps for the vectors to be the singular ones: then the gradient that takes them for constants is exact
MANY = 200

ROWS = values(4, 6)
ROWS[1, 0] = ROWS[2, 3] = 0
COUNT, SUM, SQUARES = values(6, low=5, high=9), values(6, seed=8), values(6, low=1, high=4, seed=9)
SEEN = {"BatchSize": COUNT, "BatchSum": SUM, "BatchSquareSum": SQUARES}
MEANS, FACTORS = SUM / COUNT, np.sqrt(COUNT / SQUARES)
THERE = np.ones((4, 6))
THERE[1, :3] = THERE[2, 3:] = 0
W, B = values(6, seed=10), values(6, seed=11)

family(
    globals(),
    Differentiable,
    {
        "lrn": lrn(1, 1, 3),
        "lrn/even": lrn(1, 2, 4),
        "lrn/wide": lrn(4, 4, 9),
        "lrn/last": lrn(2, 2, 5, channels_last=True),
        "instance_norm": instance(X, SCALE, BIAS, Scale=SCALE, Bias=BIAS),
        "instance_norm/plain": instance(X),
        "instance_norm/line": instance(X[..., 0], SCALE, BIAS, Scale=SCALE, Bias=BIAS),
        "spectral_norm": {
            "inputs": {"Weight": WEIGHT, "U": U, "V": V}, "attrs": {"power_iters": MANY}, "grads": ("Weight",),
            "outputs": {"Out": spectral(WEIGHT, 0, MANY, U, V)},
        },
        "spectral_norm/given": {
            "inputs": {"Weight": WEIGHT, "U": U1, "V": V1}, "attrs": {"power_iters": 0, "dim": 1}, "grads": ("Weight",),
            "outputs": {"Out": spectral(WEIGHT, 1, 0, U1, V1)},
        },
        "data_norm": {
            "inputs": {"X": ROWS, **SEEN}, "loss": ("Y",), "grads": ("X",),
            "outputs": {"Y": (ROWS - MEANS) * FACTORS, "Means": MEANS, "Scales": FACTORS},
        },
        "data_norm/shifted": {
            "inputs": {"X": ROWS, "scale_w": W, "bias": B, **SEEN}, "attrs": {"enable_scale_and_shift": True},
            "outputs": {"Y": (ROWS - MEANS) * FACTORS * W + B, "Means": MEANS, "Scales": FACTORS},
            "loss": ("Y",), "grads": ("X", "scale_w", "bias"),
        },
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "spectral_norm/one": {
            "inputs": {"Weight": WEIGHT, "U": U, "V": V}, "outputs": {"Out": spectral(WEIGHT, 0, 1, U, V)},
        },
        "data_norm/slots": {
            "inputs": {"X": ROWS, **SEEN}, "attrs": {"slot_dim": 3},
            "outputs": {"Y": (ROWS - MEANS) * FACTORS * THERE, "Means": MEANS, "Scales": FACTORS},
        },
    },
)  # fmt: skip


def summaries(attrs):
    """The counts, sums and squares of the rows."""
    test = OpTest()
    test.op_type, test.inputs, test.attrs = "data_norm", {"X": ROWS, **SEEN}, attrs
    test.outputs = {"Y": None, "Means": None, "Scales": None}
    return list(test.gradients_of_mean(["BatchSize", "BatchSum", "BatchSquareSum"], "Y").values())


def test_the_gradients_of_summaries_are_what_a_batch_adds():
    count, total, squares = summaries({})
    np.testing.assert_array_equal(count, np.full(6, 4))
    np.testing.assert_allclose(total, ROWS.sum(0))
    np.testing.assert_allclose(squares, ((ROWS - MEANS) ** 2).sum(0) + 4 * LESS)


def test_a_slot_adds_the_mean_of_the_rows_that_have_it():
    count, total, squares = summaries({"slot_dim": 3})
    np.testing.assert_array_equal(count, np.ones(6))
    np.testing.assert_allclose(total, (ROWS * THERE).sum(0) / 3)
    np.testing.assert_allclose(squares, ((ROWS - MEANS) ** 2 * THERE).sum(0) / 3 + 3 * LESS)


@pytest.mark.timeout(60)
def test_power_iteration_ends_where_it_moves_no_more():
    many, most = (
        run_op("spectral_norm", {"Weight": WEIGHT, "U": U, "V": V}, {"power_iters": steps})["Out"]
        for steps in (1000, 2**31 - 1)
    )
    np.testing.assert_array_equal(many, most)


def test_vectors_that_do_not_fit_a_weight():
    with pytest.raises(RuleError, match="must fit the weight as a matrix"):
        run_op("spectral_norm", {"Weight": WEIGHT, "U": U, "V": U})


def test_slots_that_do_not_divide_the_columns():
    with pytest.raises(RuleError, match="must divide the columns"):
        run_op("data_norm", {"X": ROWS, **SEEN}, {"slot_dim": 4})
