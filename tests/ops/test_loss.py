"""Losses and measures."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, Forward, family, values

P = values(4, 3, low=0.1, high=1.0)
LABEL = np.array([[2], [0], [1], [2]])
SOFT = values(4, 3, low=0.0, high=1.0, seed=9)
PICKED = P[np.arange(4), LABEL[:, 0]][:, None]
IGNORED = np.array([[2], [-100], [1], [-100]])
DEEP, DEEP_LABEL = values(2, 3, 4, low=0.1, high=1.0), np.array([[[0], [3], [1]], [[2], [2], [0]]])

family(
    globals(),
    Differentiable,
    {
        "cross_entropy": {
            "inputs": {"X": P, "Label": LABEL}, "outputs": {"Y": -np.log(PICKED)}, "grads": ("X",),
        },
        "cross_entropy/soft": {
            "inputs": {"X": P, "Label": SOFT}, "attrs": {"soft_label": True},
            "outputs": {"Y": -(SOFT * np.log(P)).sum(1, keepdims=True)}, "grads": ("X",),
        },
        "cross_entropy/ignored": {
            "inputs": {"X": P, "Label": IGNORED},
            "outputs": {"Y": np.where(IGNORED == -100, 0, -np.log(PICKED))}, "grads": ("X",),
        },
        "cross_entropy/ignored_class": {
            "inputs": {"X": P, "Label": LABEL}, "attrs": {"ignore_index": 2},
            "outputs": {"Y": np.where(LABEL == 2, 0, -np.log(PICKED))}, "grads": ("X",),
        },
        "cross_entropy/deep": {
            "inputs": {"X": DEEP, "Label": DEEP_LABEL},
            "outputs": {"Y": -np.log(np.take_along_axis(DEEP, DEEP_LABEL, -1))}, "grads": ("X",),
        },
        "cross_entropy/sequences": {
            "inputs": {"X": (P, [[1, 3]]), "Label": (LABEL, [[1, 3]])}, "outputs": {"Y": (-np.log(PICKED), [[1, 3]])},
            "grads": ("X",),
        },
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "cross_entropy/impossible": {
            "inputs": {"X": np.array([[0.0, 1.0]]), "Label": np.array([[0]])}, "outputs": {"Y": np.array([[1e20]])},
        },
    },
)  # fmt: skip


class TestAccuracy(OpTest):
    op_type = "accuracy"
    inputs = {"Out": P[:, :2].astype("float32"), "Indices": np.array([[2, 0], [1, 2], [0, 1], [0, 1]]), "Label": LABEL}
    outputs = {
        "Accuracy": np.array([0.5], "float32"),
        "Correct": np.array([2], "int32"),
        "Total": np.array([4], "int32"),
    }

    def test_output(self):
        self.check_output()


def test_a_label_that_is_no_class():
    for bad in (3, -1):
        with pytest.raises(EnforceNotMet, match="A label is out of range: it should be from 0 to 2") as e:
            run_op("cross_entropy", {"X": P, "Label": np.array([[0], [bad], [1], [1]])})
        assert e.value.received == bad


def test_an_ignored_label_touches_no_other_row():
    """-100 lies rows before its own where the rows are laid end to end."""
    x, label = np.full((60, 2), 0.5), np.zeros((60, 1), int)
    label[-5:] = -100
    g = {"X": x, "Label": label, "Y@GRAD": np.ones((60, 1))}
    dx = run_op("cross_entropy_grad", g, {"soft_label": False, "ignore_index": -100}, ["X@GRAD"])["X@GRAD"]
    assert (dx[:-5, 0] == -2).all() and (dx[-5:] == 0).all() and (dx[:, 1] == 0).all()


def test_labels_of_another_shape():
    with pytest.raises(RuleError, match="should have the same shape but for the last dimension"):
        run_op("cross_entropy", {"X": P, "Label": LABEL[:2]})
    with pytest.raises(RuleError, match="should be 1 for class numbers"):
        run_op("cross_entropy", {"X": P, "Label": np.zeros((4, 3), int)})
    with pytest.raises(RuleError, match="should hold class numbers"):
        run_op("cross_entropy", {"X": P, "Label": SOFT[:, :1]})
    with pytest.raises(RuleError, match="that of the classes when soft_label is set"):
        run_op("cross_entropy", {"X": P, "Label": SOFT[:, :2]}, {"soft_label": True})
    with pytest.raises(RuleError, match="number of rows"):
        run_op("accuracy", {"Out": P[:, :1], "Indices": LABEL, "Label": LABEL[:2]})
