"""Operators over classes: their labels are declared float32, as everything was, and hold integers."""

import unittest

import numpy as np
from op_case import OpCase


class TestCrossEntropy(OpCase):
    """The label is declared float32, as everything is, and holds int64."""

    def setUp(self):
        self.op_type = "cross_entropy"
        p = np.random.uniform(0.1, 1, (5, 4))
        p /= p.sum(axis=1, keepdims=True)
        label = np.random.randint(0, 4, (5, 1), dtype="int64")
        self.inputs = {"X": p, "Label": label}
        self.outputs = {"Y": -np.log(p[np.arange(5), label.ravel()]).reshape(5, 1)}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["X"], "Y", no_grad_set=set("Label"), max_relative_error=0.05)


class TestLookupTable(OpCase):
    def setUp(self):
        self.op_type = "lookup_table"
        table = np.random.random((7, 3))
        ids = np.random.randint(0, 7, 4).astype("int64")
        self.inputs = {"W": table, "Ids": np.expand_dims(ids, axis=1)}
        self.outputs = {"Out": table[ids]}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["W"], "Out", no_grad_set=set("Ids"))


class TestAccuracy(OpCase):
    def test_output(self):
        self.op_type = "accuracy"
        indices = np.array([[0, 2], [1, 3], [2, 0]], "int64")
        label = np.array([[2], [0], [2]], "int64")
        self.inputs = {"Out": np.random.random((3, 2)).astype("float32"), "Indices": indices, "Label": label}
        counts = np.array([2], "int32"), np.array([3], "int32")
        self.outputs = {"Accuracy": np.array([2 / 3.0], "float32"), "Correct": counts[0], "Total": counts[1]}
        self.check_output()


if __name__ == "__main__":
    unittest.main()
