"""`mul` in the developer guide's manner: a unittest case for the operator, `fluidnb test -R test_mul_op -V` runs it."""

from __future__ import annotations

import numpy as np

from fluidnb.testing import FluidOpTest


class TestMulOp(FluidOpTest):
    """A product of two matrices."""

    def setUp(self) -> None:
        """Operands and what comes out."""
        rng = np.random.RandomState(0)
        self.op_type = "mul"
        self.inputs = {"X": rng.rand(4, 5).astype("float32"), "Y": rng.rand(5, 3).astype("float32")}
        self.outputs = {"Out": self.inputs["X"] @ self.inputs["Y"]}

    def test_check_output(self) -> None:
        self.check_output()

    def test_check_grad_normal(self) -> None:
        self.check_grad(["X", "Y"], "Out")

    def test_check_grad_ignore_x(self) -> None:
        self.check_grad(["Y"], "Out", no_grad_set={"X"})
