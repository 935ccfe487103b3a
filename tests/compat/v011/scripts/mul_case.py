"""The operator mul, with two axes and with more."""

import unittest

import numpy as np
from op_case import OpCase


class TestMul(OpCase):
    def setUp(self):
        self.op_type = "mul"
        self.inputs = {"X": np.random.random((3, 4)).astype("float32"), "Y": np.random.random((4, 2)).astype("float32")}
        self.outputs = {"Out": np.dot(self.inputs["X"], self.inputs["Y"])}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["X", "Y"], "Out", max_relative_error=0.05)

    def test_grad_without_x(self):
        self.check_grad(["Y"], "Out", no_grad_set=set("X"), max_relative_error=0.05)


class TestMulOfMoreAxes(OpCase):
    def setUp(self):
        self.op_type = "mul"
        x = np.random.random((2, 3, 2, 2)).astype("float64")
        y = np.random.random((2, 2, 3)).astype("float64")
        self.inputs = {"X": x, "Y": y}
        self.attrs = {"x_num_col_dims": 2, "y_num_col_dims": 2}
        self.outputs = {"Out": np.dot(x.reshape(6, 4), y.reshape(4, 3)).reshape(2, 3, 3)}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["X", "Y"], "Out")


if __name__ == "__main__":
    unittest.main()
