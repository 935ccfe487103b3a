"""Operators over sequences, with LoDs as offsets."""

import unittest

import numpy as np
from op_case import OpCase


class TestSequencePool(OpCase):
    lod = [[0, 2, 3, 7]]

    def setUp(self):
        self.op_type = "sequence_pool"
        x = np.random.uniform(0.1, 1, (7, 3))
        self.inputs = {"X": (x, self.lod)}
        self.attrs = {"pooltype": "AVERAGE"}
        ends = self.lod[0]
        self.outputs = {"Out": np.stack([x[ends[i] : ends[i + 1]].mean(axis=0) for i in range(3)])}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.outputs["MaxIndex"] = np.zeros((3, 3)).astype("int32")
        self.check_grad(["X"], "Out")


class TestSequenceSoftmax(OpCase):
    def setUp(self):
        self.op_type = "sequence_softmax"
        x = np.random.uniform(0.1, 1, (6, 1)).astype("float32")
        lod = [[0, 4, 6]]
        out = np.concatenate([np.exp(x[:4]) / np.exp(x[:4]).sum(), np.exp(x[4:]) / np.exp(x[4:]).sum()])
        self.inputs = {"X": (x, lod)}
        self.outputs = {"Out": out}

    def test_output(self):
        self.check_output()


class TestSequenceExpand(OpCase):
    def setUp(self):
        self.op_type = "sequence_expand"
        x = np.random.random((3, 2))
        y = np.random.random((6, 1))
        self.inputs = {"X": x, "Y": (y, [[0, 1, 4, 6]])}
        self.outputs = {"Out": x.repeat([1, 3, 2], axis=0)}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["X"], "Out")


if __name__ == "__main__":
    unittest.main()
