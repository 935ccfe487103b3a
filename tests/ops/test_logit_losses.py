"""Losses of logits, distances, pairs and rankings."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, distinct, family, values
from tests.tools.refused import refused

X = values(4, 3, low=-2.0, high=2.0)
DEEP = values(2, 3, 4)
LABEL = np.array([[2], [0], [1], [2]])
IGNORED = np.array([[2], [-100], [1], [-100]])
SIDEWAYS = np.array([[[0, 2, 1, 1]], [[2, 2, 0, 1]]])
SOFT = np.random.default_rng(0).dirichlet(np.ones(3), 4)
GAP = distinct(4, 1, step=0.5)
YES = np.array([[1.0], [0.0], [1.0], [0.0]])
LEFT, RIGHT = values(4, 1, seed=1), values(4, 1, seed=2)


def f32(x):
    return float(np.float32(x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def picked(x, label, axis=-1):
    return -np.log(np.take_along_axis(softmax(x, axis), np.where(label < 0, 0, label), axis))


def logistic(x):
    return 1 / (1 + np.exp(-x))


def huber(r, delta):
    return np.where(np.abs(r) <= delta, r * r / 2, delta * (np.abs(r) - delta / 2))


def binary(x, label):
    return np.maximum(x, 0) - x * label + np.log1p(np.exp(-np.abs(x)))


def bpr(x, label):
    own = np.take_along_axis(x, label, 1)
    terms = np.log1p(np.exp(x - own))
    np.put_along_axis(terms, label, 0, 1)
    return terms.sum(1, keepdims=True) / (x.shape[1] - 1)


def rows(x):
    return x.sum(tuple(range(1, x.ndim))).reshape(-1, 1)


P, T = values(4, 3, low=0.2, high=0.8), np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
MARK = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, 1.0], [-1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
KL = np.where(T > 0, T * (np.log(np.where(T > 0, T, 1)) - X), 0)
IN, OUT = values(4, 3, low=0.5, high=1.5, seed=4), values(4, 3, low=0.5, high=1.5, seed=5)
FAR = distinct(4, 3, step=0.3)
SIGNS = 2 * YES - 1
V = GAP * SIGNS

family(
    globals(),
    Differentiable,
    {
        "softmax_with_cross_entropy": {
            "inputs": {"Logits": X, "Label": LABEL}, "outputs": {"Loss": picked(X, LABEL), "Softmax": softmax(X)},
            "grads": ("Logits",), "loss": ("Loss",),
        },
        "softmax_with_cross_entropy/ignored": {
            "inputs": {"Logits": X, "Label": IGNORED},
            "outputs": {"Loss": np.where(IGNORED < 0, 0, picked(X, IGNORED)), "Softmax": softmax(X)},
            "grads": ("Logits",), "loss": ("Loss",),
        },
        "softmax_with_cross_entropy/axis": {
            "inputs": {"Logits": DEEP, "Label": SIDEWAYS}, "attrs": {"axis": 1},
            "outputs": {"Loss": picked(DEEP, SIDEWAYS, 1), "Softmax": softmax(DEEP, 1)},
            "grads": ("Logits",), "loss": ("Loss",),
        },
        "softmax_with_cross_entropy/soft": {
            "inputs": {"Logits": X, "Label": SOFT}, "attrs": {"soft_label": True},
            "outputs": {"Loss": -(SOFT * np.log(softmax(X))).sum(1, keepdims=True), "Softmax": softmax(X)},
            "grads": ("Logits",), "loss": ("Loss",),
        },
        "softmax_with_cross_entropy/sequences": {
            "inputs": {"Logits": (X, [[1, 3]]), "Label": (LABEL, [[1, 3]])},
            "outputs": {"Loss": (picked(X, LABEL), [[1, 3]]), "Softmax": (softmax(X), [[1, 3]])},
            "grads": ("Logits",), "loss": ("Loss",),
        },
        "sigmoid_cross_entropy_with_logits": {
            "inputs": {"X": X, "Label": SOFT}, "outputs": {"Out": binary(X, SOFT)}, "grads": ("X",),
        },
        "sigmoid_cross_entropy_with_logits/ignored": {
            "inputs": {"X": X, "Label": MARK}, "attrs": {"ignore_index": -1, "normalize": True},
            "outputs": {"Out": np.where(MARK == -1, 0, binary(X, MARK)) / 10}, "grads": ("X",),
        },
        "log_loss": {
            "inputs": {"Predicted": P[:, :1], "Labels": YES}, "attrs": {"epsilon": 1e-3},
            "outputs": {"Loss": -YES * np.log(P[:, :1] + f32(1e-3)) - (1 - YES) * np.log(1 - P[:, :1] + f32(1e-3))},
            "grads": ("Predicted",),
        },
        "hinge_loss": {
            "inputs": {"Logits": GAP, "Labels": YES}, "outputs": {"Loss": np.maximum(0, 1 - V)}, "grads": ("Logits",),
        },
        "huber_loss": {
            "inputs": {"X": LEFT, "Y": LEFT + GAP}, "attrs": {"delta": 0.5},
            "outputs": {"Out": huber(GAP, 0.5), "Residual": GAP}, "loss": ("Out",),
        },
        "modified_huber_loss": {
            "inputs": {"X": GAP * 3, "Y": YES},
            "outputs": {
                "Out": np.where(3 * V >= -1, np.maximum(0, 1 - 3 * V) ** 2, -12 * V), "IntermediateVal": 3 * V,
            },
            "grads": ("X",), "loss": ("Out",),
        },
        "smooth_l1_loss": {
            "inputs": {"X": FAR, "Y": np.zeros((4, 3))}, "attrs": {"sigma": 2.0},
            "outputs": {"Out": rows(4 * huber(FAR, 0.25)), "Diff": FAR}, "loss": ("Out",),
        },
        "smooth_l1_loss/weights": {
            "inputs": {"X": FAR, "Y": np.zeros((4, 3)), "InsideWeight": IN, "OutsideWeight": OUT},
            "outputs": {"Out": rows(OUT * huber(FAR * IN, 1)), "Diff": FAR * IN}, "grads": ("X", "Y"), "loss": ("Out",),
        },
        "kldiv_loss": {
            "inputs": {"X": X, "Target": T}, "outputs": {"Loss": np.array([KL.mean()])}, "grads": ("X",),
        },
        "kldiv_loss/none": {
            "inputs": {"X": X, "Target": T}, "attrs": {"reduction": "none"}, "outputs": {"Loss": KL}, "grads": ("X",),
        },
        "kldiv_loss/sum": {
            "inputs": {"X": X, "Target": T}, "attrs": {"reduction": "sum"}, "outputs": {"Loss": np.array([KL.sum()])},
            "grads": ("X",),
        },
        "kldiv_loss/rows": {
            "inputs": {"X": X, "Target": T}, "attrs": {"reduction": "batchmean"},
            "outputs": {"Loss": np.array([KL.sum() / 4])}, "grads": ("X",),
        },
        "rank_loss": {
            "inputs": {"Label": YES, "Left": LEFT, "Right": RIGHT},
            "outputs": {"Out": np.log1p(np.exp(LEFT - RIGHT)) - YES * (LEFT - RIGHT)}, "grads": ("Left", "Right"),
        },
        "margin_rank_loss": {
            "inputs": {"Label": SIGNS, "X1": GAP, "X2": np.zeros((4, 1))}, "attrs": {"margin": 0.5},
            "outputs": {"Out": np.maximum(0, 0.5 - V), "Activated": (V < 0.5).astype("float64")},
            "grads": ("X1", "X2"), "loss": ("Out",),
        },
        "bpr_loss": {"inputs": {"X": X, "Label": LABEL}, "outputs": {"Y": bpr(X, LABEL)}, "grads": ("X",)},
        "cross_entropy2": {
            "inputs": {"X": P, "Label": LABEL},
            "outputs": {
                "Y": -np.log(np.take_along_axis(P, LABEL, 1)), "MatchX": np.take_along_axis(P, LABEL, 1),
                "XShape": np.zeros((0, 4, 3)),
            },
            "grads": ("X",), "loss": ("Y",),
        },
        "label_smooth": {
            "inputs": {"X": SOFT}, "attrs": {"epsilon": 0.25}, "outputs": {"Out": 0.75 * SOFT + 0.25 / 3},
        },
        "label_smooth/prior": {
            "inputs": {"X": SOFT, "PriorDist": SOFT[:1]}, "attrs": {"epsilon": 0.25},
            "outputs": {"Out": 0.75 * SOFT + 0.25 * SOFT[:1]}, "grads": ("X",),
        },
    },
)  # fmt: skip


def test_ignored_rows_of_cross_entropy2_have_no_loss():
    got = run_op("cross_entropy2", {"X": P, "Label": IGNORED}, outputs=["Y"])["Y"]
    assert (got[IGNORED < 0] == 0).all() and (got[IGNORED >= 0] > 0).all()


def test_the_loss_of_what_is_all_but_impossible_is_finite():
    got = run_op("softmax_with_cross_entropy", {"Logits": [[1000.0, 0.0]], "Label": [[1]]})
    assert got["Loss"].item() == 64 and got["Softmax"][0, 0] == 1


def test_large_logits_do_not_overflow():
    got = run_op("sigmoid_cross_entropy_with_logits", {"X": [[-1e4, 1e4]], "Label": [[0.0, 0.0]]})["Out"]
    assert got.tolist() == [[0, 1e4]]


@pytest.mark.parametrize("op", ["softmax_with_cross_entropy", "bpr_loss", "cross_entropy2"])
@pytest.mark.parametrize("label", [3, -1])
def test_a_label_that_is_no_class(op, label):
    x = {"Logits" if op[0] == "s" else "X": P[:1], "Label": np.array([[label]])}
    with pytest.raises(EnforceNotMet, match="A label is out of range"):
        run_op(op, x)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("softmax_with_cross_entropy", {"Logits": X, "Label": LABEL[:2]}, {}, "does not fit Input"),
        ("softmax_with_cross_entropy", {"Logits": X, "Label": SOFT}, {}, "does not fit Input"),
        ("softmax_with_cross_entropy", {"Logits": X, "Label": YES}, {}, "has the wrong dtype"),
        ("softmax_with_cross_entropy", {"Logits": X, "Label": LABEL}, {"axis": 2}, "must name a dimension"),
        ("huber_loss", {"X": LEFT, "Y": X}, {"delta": 1.0}, "must have the same shape"),
        ("log_loss", {"Predicted": LEFT, "Labels": X}, {"epsilon": 1e-4}, "must have the same shape"),
        ("smooth_l1_loss", {"X": X, "Y": X, "InsideWeight": X}, {}, "both weights or none"),
        ("kldiv_loss", {"X": X, "Target": SOFT[:2]}, {}, "must have the same shape"),
        ("label_smooth", {"X": SOFT, "PriorDist": [[0.5, 0.5]]}, {"epsilon": 0.1}, "a number for each class"),
        ("bpr_loss", {"X": X[:, :1], "Label": LABEL}, {}, "at least two classes"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)
