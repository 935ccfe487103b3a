"""A test as Fluid's own repository writes them, on our FluidOpTest; and what it must catch."""

import unittest

import numpy as np
import pytest

from fluidnb.op import get_op, grad_op
from fluidnb.testing import FluidOpTest, OpTest


class TestMulOp(FluidOpTest):
    def setUp(self):
        self.op_type = "mul"
        self.inputs = {"X": np.random.random((2, 5)).astype("float32"), "Y": np.random.random((5, 3)).astype("float32")}
        self.outputs = {"Out": np.dot(self.inputs["X"], self.inputs["Y"])}

    def test_check_output(self):
        self.check_output()

    def test_check_grad_normal(self):
        self.check_grad(["X", "Y"], "Out", max_relative_error=0.5)

    def test_check_grad_ignore_x(self):
        self.check_grad(["Y"], "Out", max_relative_error=0.5, no_grad_set=set("X"))


class TestSumOp(FluidOpTest):
    def setUp(self):
        self.op_type = "sum"
        x0, x1 = (np.random.random((3, 4)).astype("float32") for _ in range(2))
        self.inputs = {"X": [("x0", x0), ("x1", x1)]}
        self.outputs = {"Out": x0 + x1}

    def test_check_output(self):
        self.check_output()

    def test_check_grad(self):
        self.check_grad(["x0"], "Out")

    def test_given_gradient(self):
        self.check_grad(["x0"], "Out", user_defined_grads=[np.full((3, 4), 1 / 12)])

    def test_a_wrong_gradient_is_noticed(self):
        with pytest.raises(AssertionError):
            self.check_grad(["x0"], "Out", user_defined_grads=[np.full((3, 4), 1 / 11)])


class TestSplitOp(FluidOpTest):
    def setUp(self):
        self.op_type = "split"
        x = np.random.random((4, 6)).astype("float32")
        self.inputs, self.attrs = {"X": x}, {"axis": 1, "sections": [2, 1, 3]}
        parts = np.split(x, [2, 3], 1)
        self.outputs = {"Out": [(f"out{i}", part) for i, part in enumerate(parts)]}

    def test_check_output(self):
        self.check_output()


def test_unittest_runs_them_too():
    for case in (TestMulOp, TestSumOp):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        assert result.wasSuccessful() and result.testsRun >= 3


class Relu(OpTest):
    op_type = "relu"


def test_kinks_are_left_out():
    test = Relu()
    test.inputs = {"X": np.array([1e-6, -2.0, 3.0, -1e-7])}
    test.check_grad("X")


def test_large_inputs_are_moved_along_random_directions():
    test = Relu()
    test.inputs = {"X": np.random.default_rng(0).choice([-1.0, 1.0], (40, 50)) * 0.7}
    test.check_grad("X")


@pytest.mark.parametrize("shape", [(4,), (40, 50)])
def test_a_wrong_gradient_is_found(shape, monkeypatch):
    relu_grad = get_op("relu_grad")

    @grad_op("relu_grad", replace=True)
    def wrong(b):
        b(np.multiply, b["Out@GRAD"], b.const(0.99, np.float64), out=b["X@GRAD"])

    try:
        test = Relu()
        test.inputs = {"X": np.random.default_rng(0).uniform(0.5, 1, shape)}
        with pytest.raises(AssertionError, match="the gradient of X is off by"):
            test.check_grad("X")
    finally:
        from fluidnb.op import registry

        registry.ops["relu_grad"] = relu_grad
        registry.version += 1
