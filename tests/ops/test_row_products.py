"""Lengths, products of rows, running sums, and measures and random numbers that come with them."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, Forward, distinct, family, values
from tests.tools.refused import refused

X, Y = values(3, 4, seed=1), values(3, 4, seed=2)
DEEP = values(2, 3, 4)
EPS = float(np.float32(1e-10))


def length(x, axis):
    return np.sqrt((x * x).sum(axis, keepdims=True) + EPS)


def reversed_sum(x, axis):
    return np.flip(np.flip(x, axis).cumsum(axis), axis)


def cosine(x, y):
    return (x * y).sum(1, keepdims=True) / norms(x) / norms(y)


def norms(x):
    return np.linalg.norm(x, axis=1, keepdims=True)


family(
    globals(),
    Differentiable,
    {
        "norm": {
            "inputs": {"X": DEEP}, "attrs": {"axis": 1},
            "outputs": {"Out": DEEP / length(DEEP, 1), "Norm": length(DEEP, 1)}, "loss": ("Out",),
        },
        "l1_norm": {"inputs": {"X": distinct(3, 4)}, "outputs": {"Out": np.array([np.abs(distinct(3, 4)).sum()])}},
        "minus": {"inputs": {"X": X, "Y": Y}, "outputs": {"Out": X - Y}},
        "dot": {"inputs": {"X": X, "Y": Y}, "outputs": {"Out": (X * Y).sum(1)}},
        "dot/vectors": {"inputs": {"X": X[0], "Y": Y[0]}, "outputs": {"Out": np.array([X[0] @ Y[0]])}},
        "cos_sim": {
            "inputs": {"X": X, "Y": Y}, "outputs": {"Out": cosine(X, Y), "XNorm": norms(X), "YNorm": norms(Y)},
            "loss": ("Out",),
        },
        "cos_sim/one": {
            "inputs": {"X": X, "Y": Y[:1]},
            "outputs": {"Out": cosine(X, Y[:1]), "XNorm": norms(X), "YNorm": norms(Y[:1])}, "loss": ("Out",),
        },
        "squared_l2_distance": {
            "inputs": {"X": X, "Y": Y}, "outputs": {"Out": ((X - Y) ** 2).sum(1, keepdims=True), "sub_result": X - Y},
            "loss": ("Out",),
        },
        "squared_l2_distance/one": {
            "inputs": {"X": X, "Y": Y[:1]},
            "outputs": {"Out": ((X - Y[:1]) ** 2).sum(1, keepdims=True), "sub_result": X - Y[:1]}, "loss": ("Out",),
        },
        "squared_l2_distance/deep": {
            "inputs": {"X": DEEP, "Y": DEEP[:1] + 1},
            "outputs": {
                "Out": ((DEEP - DEEP[:1] - 1) ** 2).sum((1, 2))[:, None],
                "sub_result": (DEEP - DEEP[:1] - 1).reshape(len(DEEP), -1),
            },
            "loss": ("Out",),
        },
        "cumsum": {"inputs": {"X": X}, "outputs": {"Out": X.cumsum(1)}},
        "cumsum/axis": {"inputs": {"X": DEEP}, "attrs": {"axis": 1}, "outputs": {"Out": DEEP.cumsum(1)}},
        "cumsum/reverse": {
            "inputs": {"X": DEEP}, "attrs": {"axis": 0, "reverse": True}, "outputs": {"Out": reversed_sum(DEEP, 0)},
        },
        "cumsum/exclusive": {
            "inputs": {"X": DEEP}, "attrs": {"axis": 1, "exclusive": True}, "outputs": {"Out": DEEP.cumsum(1) - DEEP},
        },
        "cumsum/both": {
            "inputs": {"X": DEEP}, "attrs": {"exclusive": True, "reverse": True},
            "outputs": {"Out": reversed_sum(DEEP, 2) - DEEP},
        },
        "cumsum/flat": {"inputs": {"X": X}, "attrs": {"flatten": True}, "outputs": {"Out": X.cumsum()}},
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "clip_by_norm": {
            "inputs": {"X": X}, "attrs": {"max_norm": 0.5}, "outputs": {"Out": X * 0.5 / np.linalg.norm(X)},
        },
        "clip_by_norm/short": {"inputs": {"X": X}, "attrs": {"max_norm": 50.0}, "outputs": {"Out": X}},
        "clip_by_norm/zero": {"inputs": {"X": 0 * X}, "attrs": {"max_norm": 1.0}, "outputs": {"Out": 0 * X}},
        "cumsum/whole": {"inputs": {"X": np.arange(4)}, "outputs": {"Out": np.array([0, 1, 3, 6])}},
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("norm", {"X": X}, {"axis": 2}, "must name a dimension"),
        ("cumsum", {"X": X}, {"axis": 2}, "must name a dimension"),
        ("dot", {"X": X, "Y": Y[:2]}, {}, "must have the same shape"),
        ("dot", {"X": DEEP, "Y": DEEP}, {}, "one or two dimensions"),
        ("minus", {"X": X, "Y": Y[0]}, {}, "must have the same shape"),
        ("cos_sim", {"X": X, "Y": Y[:2]}, {}, "do not fit"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)


def test_a_length_that_is_not_positive():
    with pytest.raises(OpValueError, match="larger_than check fails"):
        run_op("clip_by_norm", {"X": X}, {"max_norm": 0.0})


SCORES = np.array([[0.9, 0.1], [0.4, 0.6], [0.35, 0.65], [0.2, 0.8]])
LABELS = np.array([[0], [0], [1], [1]])


def state(*rows):
    return np.array(rows, "int64")


class TestAuc(OpTest):
    op_type = "auc"
    inputs = {"Predict": SCORES, "Label": LABELS, "StatPos": state([0] * 11), "StatNeg": state([0] * 11)}
    attrs = {"num_thresholds": 10, "slide_steps": 0}
    outputs = {
        "AUC": np.array([0.875]),  # one of the four pairs shares a bucket
        "StatPosOut": state([0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0]),
        "StatNegOut": state([0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
    }

    def test_output(self):
        self.check_output()


def area(predict, label, attrs, pos=None, neg=None):
    empty = state(*[[0] * (attrs["num_thresholds"] + 1)] * max(attrs.get("slide_steps", 1), 1))
    inputs = {"Predict": predict, "Label": label, "StatPos": empty if pos is None else pos}
    return run_op("auc", {**inputs, "StatNeg": empty if neg is None else neg}, attrs)


def test_auc_adds_up_batches():
    whole = area(SCORES, LABELS, {"num_thresholds": 1000, "slide_steps": 0})
    first = area(SCORES[::2], LABELS[::2], {"num_thresholds": 1000, "slide_steps": 0})
    both = area(
        SCORES[1::2], LABELS[1::2], {"num_thresholds": 1000, "slide_steps": 0}, first["StatPosOut"], first["StatNegOut"]
    )
    assert both["AUC"] == whole["AUC"] == 1


def test_auc_over_the_last_batches_forgets_older_ones():
    attrs = {"num_thresholds": 1000, "slide_steps": 2}
    got = area(1 - SCORES, LABELS, attrs)
    assert got["AUC"] == 0
    for _ in range(2):
        got = area(SCORES, LABELS, attrs, got["StatPosOut"], got["StatNegOut"])
    assert got["AUC"] == 1


def test_auc_of_one_class_is_zero_and_precision_of_a_perfect_ranking_is_one():
    attrs = {"num_thresholds": 1000}
    assert area(SCORES, np.ones((4, 1), "int64"), attrs)["AUC"] == 0
    assert area(SCORES, LABELS, attrs | {"curve": "PR"})["AUC"] == 1


def test_auc_refuses_what_is_no_probability_and_states_that_do_not_fit():
    with pytest.raises(EnforceNotMet, match="must hold probabilities"):
        area(SCORES + 1, LABELS, {"num_thresholds": 10})
    with pytest.raises(RuleError, match="does not fit its attributes"):
        area(SCORES, LABELS, {"num_thresholds": 10}, pos=state([0] * 5))
    with pytest.raises(RuleError, match="a label for each row"):
        area(SCORES, LABELS[:2], {"num_thresholds": 10})


class TestTruncatedGaussianRandom(OpTest):
    op_type, attrs = "truncated_gaussian_random", {"shape": [40, 50], "mean": 1.0, "std": 2.0, "seed": 7}

    def setUp(self):
        def check(x):
            assert x.shape == (40, 50) and x.dtype == np.float32
            assert np.abs(x - 1).max() <= 4 and abs(x.mean() - 1) < 0.15 and abs(x.std() - 2 * 0.88) < 0.1

        self.outputs = {"Out": check}

    def test_output(self):
        self.check_output()


class TestUniformRandomBatchSizeLike(OpTest):
    op_type, inputs = "uniform_random_batch_size_like", {"Input": (np.zeros((3, 2)), [[1, 2]])}
    attrs = {"shape": [-1, 500], "min": 2.0, "max": 4.0}

    def setUp(self):
        def check(x):
            assert x.shape == (3, 500) and x.min() >= 2 and x.max() < 4 and abs(x.mean() - 3) < 0.1

        self.outputs = {"Out": check}

    def test_output(self):
        self.check_output()


class TestGaussianRandomBatchSizeLike(OpTest):
    op_type, inputs = "gaussian_random_batch_size_like", {"Input": np.zeros((2, 3))}
    attrs = {"shape": [500, -1], "input_dim_idx": 1, "output_dim_idx": 1, "mean": 2.0, "std": 0.5}

    def setUp(self):
        def check(x):
            assert x.shape == (500, 3) and abs(x.mean() - 2) < 0.1 and abs(x.std() - 0.5) < 0.1

        self.outputs = {"Out": check}

    def test_output(self):
        self.check_output()


class TestSamplingId(OpTest):
    op_type, inputs = "sampling_id", {"X": np.tile([0.25, 0.0, 0.75], (2000, 1))}

    def setUp(self):
        def check(ids):
            assert ids.shape == (2000,) and not (ids == 1).any() and abs((ids == 2).mean() - 0.75) < 0.05

        self.outputs = {"Out": check}

    def test_output(self):
        self.check_output()
