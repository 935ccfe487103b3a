"""Losses of probabilities, of teachers, of trees and of samples; rankings; Adam with decay and private descent."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, Forward, distinct, family, values
from tests.tools.refused import refused

X, P = values(4, 3, low=-2.0, high=2.0), values(4, 3, low=0.2, high=0.8, seed=1)
SOFT = values(4, 3, low=0.0, high=1.0, seed=2)
LOGS = np.log(values(4, 5, low=0.1, high=0.9, seed=3))
CLASSES, IGNORED = np.array([4, 0, 2, 2]), np.array([4, -100, 2, -100])
WEIGHT = values(5, low=0.5, high=2.0, seed=4)
PIXELS, PIXEL_CLASSES = np.log(values(2, 3, 2, 2, low=0.1, high=0.9)), np.array([[[0, 2], [1, 1]], [[2, 0], [0, 1]]])
TEACHER = np.array([[-2.0], [-1.0], [0.3], [1.4]])
LOGIT = distinct(4, 1, step=0.4)
MAPS, OTHERS = values(2, 2, 3, 3), values(2, 3, 3, 3, seed=7)
IN, TREE, BIAS = values(3, 4), values(5, 4, seed=8), values(5, 1, seed=9)
LEAVES = np.array([[0], [3], [5]])
TABLE, CODES = np.array([[0, 2, -1], [0, 1, 3], [4, -1, -1]]), np.array([[1, 0, -1], [0, 1, 1], [0, -1, -1]])
WORDS, WORD_BIAS, TRUE, FALSE = values(8, 4, seed=10), values(8, seed=11), np.array([[5], [1], [6]]), [1, 4, 6]
COUNTS = np.random.default_rng(0).dirichlet(np.ones(8))
ROW_WEIGHT = values(3, 1, low=0.5, high=2.0, seed=12)


def entropy(x, z):
    return np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))


def taught():
    z, q = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([[0.0], [0.0], [0.3], [0.4]])
    return entropy(LOGIT, z) + np.where(TEACHER < 0, 0, entropy(LOGIT, q))


def binary(p, z):
    return -z * np.log(p) - (1 - z) * np.log(1 - p)


def likelihood(label, weight):
    found = np.maximum(label, 0)
    return -np.where(label < 0, 0, LOGS[np.arange(4), found] * weight[found])


def positions(length, width):
    half = width // 2
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(half) / (half - 1))
    return np.hstack([np.sin(angles), np.cos(angles)])


def way(row, nodes, bits, steps):
    z = [IN[row] @ TREE[n] + BIAS[n, 0] for n in nodes]
    return sum(np.log1p(np.exp(v)) - c * v for v, c in zip(z, bits, strict=True)) + np.log(2) * (steps - len(nodes))


#: the ways to 0, 3 and 5 of 6 classes: 6 = 110, 9 = 1001 and 11 = 1011 in binary, read from the right
TO_LEAVES = [way(0, [2, 0], [0, 1], 3), way(1, [3, 1, 0], [1, 0, 0], 3), way(2, [4, 1, 0], [1, 1, 0], 3)]
BY_TABLE = [way(0, [0, 2], [1, 0], 3), way(1, [0, 1, 3], [0, 1, 1], 3), way(2, [4], [0], 3)]


def contrast(noise, weight=1.0):
    labels = np.hstack([TRUE, np.tile(FALSE, (3, 1))])
    o = 1 / (1 + np.exp(-(np.einsum("nd,nkd->nk", IN, WORDS[labels]) + WORD_BIAS[labels])))
    q = 3 * noise[labels]
    cost = -np.log(o / (o + q))[:, :1].sum(1) - np.log(q / (o + q))[:, 1:].sum(1)
    return {"Cost": cost[:, None] * weight, "SampleLogits": o, "SampleLabels": labels}


SAMPLED = {"num_total_classes": 8, "num_neg_samples": 3, "custom_neg_classes": FALSE}
WORD = {"Input": IN, "Label": TRUE, "Weight": WORDS, "Bias": WORD_BIAS}
LOG_UNIFORM = np.log((np.arange(8) + 2.0) / (np.arange(8) + 1.0)) / np.log(8)  # the last one is never drawn

family(
    globals(),
    Differentiable,
    {
        "bce_loss": {"inputs": {"X": P, "Label": SOFT}, "outputs": {"Out": binary(P, SOFT)}, "grads": ("X",)},
        "nll_loss": {
            "inputs": {"X": LOGS, "Label": CLASSES, "Weight": WEIGHT},
            "outputs": {
                "Out": np.array([likelihood(CLASSES, WEIGHT).sum() / WEIGHT[CLASSES].sum()]),
                "Total_weight": np.array([WEIGHT[CLASSES].sum()]),
            },
            "grads": ("X",), "loss": ("Out",),
        },
        "nll_loss/none": {
            "inputs": {"X": LOGS, "Label": IGNORED}, "attrs": {"reduction": "none"},
            "outputs": {"Out": likelihood(IGNORED, np.ones(5)), "Total_weight": np.array([2.0])}, "grads": ("X",),
            "loss": ("Out",),
        },
        "nll_loss/pixels": {
            "inputs": {"X": PIXELS, "Label": PIXEL_CLASSES}, "attrs": {"reduction": "sum"},
            "outputs": {
                "Out": np.array([-np.take_along_axis(PIXELS, PIXEL_CLASSES[:, None], 1).sum()]),
                "Total_weight": np.array([8.0]),
            },
            "grads": ("X",), "loss": ("Out",),
        },
        "teacher_student_sigmoid_loss": {
            "inputs": {"X": LOGIT, "Label": TEACHER}, "outputs": {"Y": taught()}, "grads": ("X",),
        },
        "fsp": {
            "inputs": {"X": MAPS, "Y": OTHERS}, "outputs": {"Out": np.einsum("nihw,njhw->nij", MAPS, OTHERS) / 9},
        },
        "add_position_encoding": {
            "inputs": {"X": values(2, 3, 6)}, "attrs": {"alpha": 0.5, "beta": 2.0},
            "outputs": {"Out": 0.5 * values(2, 3, 6) + 2 * positions(3, 6)},
        },
        "add_position_encoding/sequences": {
            "inputs": {"X": (values(5, 4), [[2, 3]])},
            "outputs": {"Out": (values(5, 4) + np.vstack([positions(2, 4), positions(3, 4)]), [[2, 3]])},
        },
        "hierarchical_sigmoid": {
            "inputs": {"X": IN, "W": TREE, "Label": LEAVES, "Bias": BIAS}, "attrs": {"num_classes": 6},
            "outputs": {"Out": np.array(TO_LEAVES)[:, None]}, "grads": ("X", "W", "Bias"), "loss": ("Out",),
        },
        "hierarchical_sigmoid/flat_label": {
            "inputs": {"X": IN, "W": TREE, "Label": LEAVES[:, 0].copy(), "Bias": BIAS}, "attrs": {"num_classes": 6},
            "outputs": {"Out": np.array(TO_LEAVES)[:, None]}, "grads": ("X", "W", "Bias"), "loss": ("Out",),
        },
        "hierarchical_sigmoid/table": {
            "inputs": {"X": IN, "W": TREE, "Label": LEAVES, "PathTable": TABLE, "PathCode": CODES, "Bias": BIAS},
            "outputs": {"Out": np.array(BY_TABLE)[:, None]}, "grads": ("X", "W", "Bias"), "loss": ("Out",),
        },
        "nce": {
            "inputs": WORD, "attrs": SAMPLED, "outputs": contrast(np.full(8, 1 / 8)),
            "grads": ("Input", "Weight", "Bias"), "loss": ("Cost",),
        },
        "nce/log_uniform": {
            "inputs": {**WORD, "SampleWeight": ROW_WEIGHT}, "attrs": {**SAMPLED, "sampler": 1},
            "outputs": contrast(LOG_UNIFORM, ROW_WEIGHT), "grads": ("Input", "Weight", "Bias"), "loss": ("Cost",),
        },
        "nce/custom": {
            "inputs": {**WORD, "CustomDistProbs": COUNTS}, "attrs": {**SAMPLED, "sampler": 2},
            "outputs": contrast(COUNTS), "grads": ("Input", "Weight", "Bias"), "loss": ("Cost",),
        },
    },
)  # fmt: skip

STATE = {"Moment1": values(3, 2, seed=3), "Moment2": values(3, 2, low=0.1, high=1.0, seed=4)}
STEP = {"Param": values(3, 2, seed=1), "Grad": values(3, 2, seed=2), "LearningRate": np.array([0.1])}
POWERS = {"Beta1Pow": np.array([0.81]), "Beta2Pow": np.array([0.998])}
B1, B2, DECAY = (float(np.float32(v)) for v in (0.9, 0.999, 0.3))


def adamw(rate):
    m, v = B1 * STATE["Moment1"] + (1 - B1) * STEP["Grad"], B2 * STATE["Moment2"] + (1 - B2) * STEP["Grad"] ** 2
    step = m / (1 - 0.81) / (np.sqrt(v / (1 - 0.998)) + float(np.float32(1e-8)))
    return {"Moment1Out": m, "Moment2Out": v, "ParamOut": STEP["Param"] * (1 - rate * DECAY) - rate * step}


family(
    globals(),
    Forward,
    {
        "adamw": {
            "inputs": {**STEP, **STATE, **POWERS}, "attrs": {"with_decay": True, "coeff": 0.3, "lr_ratio": 0.5},
            "outputs": {
                **adamw(0.05), "Beta1PowOut": POWERS["Beta1Pow"] * B1, "Beta2PowOut": POWERS["Beta2Pow"] * B2,
            },
        },
        "dpsgd": {
            "inputs": STEP, "attrs": {"sigma": 0.0, "clip": 0.25},
            "outputs": {
                "ParamOut": STEP["Param"] - 0.1 * STEP["Grad"] / max(1, np.linalg.norm(STEP["Grad"]) / 0.25),
            },
        },
        "positive_negative_pair": {
            "inputs": {
                "Score": np.array([[9.0, 0.1], [9.0, 0.2], [9.0, 0.2], [9.0, 0.5]]),
                "Label": np.array([[0.0], [1.0], [2.0], [0.0]]), "QueryID": np.array([[1], [1], [1], [2]]),
                "AccumulatePositivePair": np.array([10.0]), "Weight": np.array([[1.0], [3.0], [1.0], [1.0]]),
            },
            "attrs": {"column": -1},
            "outputs": {
                "PositivePair": np.array([13.0], "float32"), "NegativePair": np.array([2.0], "float32"),
                "NeutralPair": np.array([2.0], "float32"),
            },
        },
    },
)  # fmt: skip


class TestPrecisionRecall(OpTest):
    op_type = "precision_recall"
    inputs = {
        "MaxProbs": values(4, 1), "Indices": np.array([[0], [1], [1], [0]], "int32"),
        "Labels": np.array([[0], [0], [1], [0]], "int32"),
        "StatesInfo": np.array([[1, 0, 0, 0], [0, 0, 1, 0]], "float32"),
    }  # fmt: skip
    attrs = {"class_number": 2}
    outputs = {
        "BatchMetrics": np.array([0.75, 5 / 6, 15 / 19, 0.75, 0.75, 0.75]),
        "AccumMetrics": np.array([0.75, 0.875, 21 / 26, 0.8, 0.8, 0.8]),
        "AccumStatesInfo": np.array([[3, 0, 1, 1], [1, 1, 3, 0]], "float32"),
    }

    def test_output(self):
        self.check_output()


def test_noise_is_one_number_of_the_right_size():
    got = [run_op("dpsgd", {**STEP, "Grad": 0 * STEP["Grad"]}, {"batch_size": 1.0, "seed": k}) for k in range(1, 400)]
    noise = np.array([(STEP["Param"] - g["ParamOut"]) / 0.1 for g in got])
    assert np.allclose(noise, noise[:, :1, :1]) and abs(noise.std() - 1) < 0.15 and abs(noise.mean()) < 0.2


@pytest.mark.parametrize(("sampler", "p"), [(0, np.full(8, 1 / 8)), (1, LOG_UNIFORM * (np.arange(8) < 7)), (2, COUNTS)])
def test_samples_come_as_often_as_their_chance_says(sampler, p):
    many = {"Input": np.zeros((2000, 2)), "Label": np.zeros((2000, 1), int), "Weight": np.zeros((8, 2))}
    attrs = {"num_total_classes": 8, "num_neg_samples": 10, "sampler": sampler, "seed": 7}
    drawn = run_op("nce", {**many, "CustomDistProbs": COUNTS}, attrs)["SampleLabels"][:, 1:]
    assert abs(np.bincount(drawn.ravel(), minlength=8) / drawn.size - p).max() < 0.015


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("nll_loss", {"X": LOGS, "Label": np.array([5, 0, 0, 0])}, {}),
        ("hierarchical_sigmoid", {"X": IN, "W": TREE, "Label": np.array([[6], [0], [0]])}, {"num_classes": 6}),
        ("nce", {**WORD, "Label": np.array([[8], [0], [0]])}, SAMPLED),
    ],
)
def test_a_label_that_is_no_class(op, inputs, attrs):
    with pytest.raises(EnforceNotMet, match="A label is out of range"):
        run_op(op, inputs, attrs)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("bce_loss", {"X": P, "Label": SOFT[:2]}, {}, "same shape"),
        ("nll_loss", {"X": LOGS, "Label": CLASSES[:2]}, {}, "does not fit"),
        ("nll_loss", {"X": LOGS, "Label": CLASSES, "Weight": WEIGHT[:2]}, {}, "one number for each class"),
        ("fsp", {"X": MAPS, "Y": OTHERS[:, :, :2]}, {}, r"must have the shape \[N, C2, H, W\]"),
        ("add_position_encoding", {"X": values(2, 3, 5)}, {}, "must be even"),
        ("add_position_encoding", {"X": values(3, 4)}, {}, r"\[N, T, D\]"),
        ("hierarchical_sigmoid", {"X": IN, "W": TREE, "Label": LEAVES}, {"num_classes": 9}, "too few rows"),
        ("hierarchical_sigmoid", {"X": IN, "W": TREE, "Label": LEAVES, "PathTable": TABLE}, {}, "or neither"),
        ("nce", WORD, {**SAMPLED, "sampler": 2}, "needs CustomDistProbs"),
        ("nce", {**WORD, "Weight": WORDS[:5]}, SAMPLED, "do not fit"),
        ("positive_negative_pair", {"Score": X, "Label": LOGIT, "QueryID": CLASSES[:, None]}, {"column": 5}, "no such"),
        (
            "precision_recall",
            {"MaxProbs": P[:, :1], "Indices": CLASSES, "Labels": CLASSES[:, None]}, {"class_number": 5},
            r"must have the shape \[N, 1\]",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(op, inputs, attrs, message):
    with refused((RuleError, EnforceNotMet), message):
        run_op(op, inputs, attrs)
