"""Elementwise operators, sums, means and optimizers, each with its output and its gradient."""

import unittest

import numpy as np
from op_case import OpCase


class TestAddAlongAnAxis(OpCase):
    def setUp(self):
        self.op_type = "elementwise_add"
        self.inputs = {"X": np.random.rand(2, 3, 4), "Y": np.random.rand(3)}
        self.attrs = {"axis": 1}
        self.outputs = {"Out": self.inputs["X"] + self.inputs["Y"].reshape(1, 3, 1)}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["X", "Y"], "Out")


class TestSumOfSeveral(OpCase):
    def setUp(self):
        self.op_type = "sum"
        parts = [np.random.random((3, 4)).astype("float32") for _ in range(3)]
        self.inputs = {"X": [("x0", parts[0]), ("x1", parts[1]), ("x2", parts[2])]}
        self.outputs = {"Out": parts[0] + parts[1] + parts[2]}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["x0"], "Out", max_relative_error=0.05)


class TestSigmoid(OpCase):
    def setUp(self):
        self.op_type = "sigmoid"
        self.inputs = {"X": np.random.uniform(-1, 1, (4, 3))}
        self.outputs = {"Out": 1 / (1 + np.exp(-self.inputs["X"]))}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["X"], "Out")


class TestReduceMean(OpCase):
    """The axis is one number: lists of them came later."""

    def setUp(self):
        self.op_type = "reduce_mean"
        self.inputs = {"X": np.random.random((2, 3, 4))}
        self.attrs = {"dim": 1, "keep_dim": True}
        self.outputs = {"Out": self.inputs["X"].mean(axis=1, keepdims=True)}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["X"], "Out")


class TestRMSProp(OpCase):
    """MeanGradOut came later, and is left alone."""

    def test_output(self):
        self.op_type = "rmsprop"
        param, grad, square, moment = (np.random.random((4, 5)).astype("float32") for _ in range(4))
        self.inputs = {"Param": param, "Grad": grad, "MeanSquare": square, "Moment": moment,
                       "LearningRate": np.array([0.01], "float32")}  # fmt: skip
        self.attrs = {"epsilon": 1e-6, "decay": 0.9, "momentum": 0.0}
        square = 0.9 * square + 0.1 * grad * grad
        moment = 0.01 * grad / np.sqrt(square + 1e-6)
        self.outputs = {"ParamOut": param - moment, "MomentOut": moment, "MeanSquareOut": square}
        self.check_output()


class TestMomentum(OpCase):
    """An optimizer's operator: its proto has the outputs of those days and no others."""

    def test_output(self):
        self.op_type = "momentum"
        param, grad, speed = (np.random.random((4, 5)).astype("float32") for _ in range(3))
        rate = np.array([0.1], "float32")
        self.inputs = {"Param": param, "Grad": grad, "Velocity": speed, "LearningRate": rate}
        self.attrs = {"mu": 0.5}
        new = speed * 0.5 + grad
        self.outputs = {"ParamOut": param - new * rate, "VelocityOut": new}
        self.check_output()


if __name__ == "__main__":
    unittest.main()
