"""Fluid's own OpTest: a unittest case whose setUp fills in the operator, with Fluid's signatures and tolerances."""

import unittest
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fluidnb.op import get_op
from fluidnb.testing.op_test import OpTest


class FluidOpTest(unittest.TestCase):
    """Base class of the unit tests of Fluid's operators.

    ``setUp`` sets ``op_type``, ``inputs``, ``attrs`` and ``outputs``; a slot that takes several variables is a list of
    (name, array), a sequence is (array, lengths).

    Example:
        >>> class TestScaleOp(FluidOpTest):
        ...     def setUp(self):
        ...         self.op_type = "scale"
        ...         self.inputs = {"X": np.ones((2, 3), "float32")}
        ...         self.attrs = {"scale": -2.0}
        ...         self.outputs = {"Out": -2 * np.ones((2, 3), "float32")}
        ...     def test_check_output(self):
        ...         self.check_output()
        ...     def test_check_grad(self):
        ...         self.check_grad(["X"], "Out")
        >>> suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestScaleOp)
        >>> suite.run(unittest.TestResult()).wasSuccessful()
        True

    Source: developer guide, step 6 of adding an operator; the signatures are those of Fluid's op_test module.
    """

    op_type: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    attrs: dict[str, Any]

    def _test(self) -> OpTest:
        test = OpTest()
        test.op_type, test.inputs, test.attrs = self.op_type, self.inputs, getattr(self, "attrs", {})
        test.outputs = {slot: self._expected(slot, value) for slot, value in self.outputs.items()}
        return test

    def _expected(self, slot: str, value: Any) -> Any:
        """Fluid names the variables of a slot that has several; we compare by position."""
        if get_op(self.op_type).outputs[slot].duplicable and isinstance(value, list):
            return [v[1] if isinstance(v, tuple) and isinstance(v[0], str) else v for v in value]
        return value

    def check_output(self, atol: float = 1e-5, no_check_set: Sequence[str] | None = None, **accepted: Any) -> None:
        """Compare outputs; see `OpTest.check_output`."""
        self._test().check_output(rtol=1e-5, atol=atol, no_check=no_check_set or ())

    def check_output_with_place(self, place: Any, atol: float = 1e-5, **accepted: Any) -> None:
        """Compare outputs; the place is the CPU."""
        self.check_output(atol)

    def check_grad(
        self, inputs_to_check: Sequence[str], output_names: str | Sequence[str],
        no_grad_set: Iterable[str] | None = None, numeric_grad_delta: float = 0.005, in_place: bool = False,
        max_relative_error: float = 0.005, user_defined_grads: Sequence[Any] | None = None, **accepted: Any,
    ) -> None:  # fmt: skip
        """Compare gradients with central differences, or with those that are given.

        Args:
            numeric_grad_delta: how far an element is moved.
            in_place: ignored (compatibility).
            user_defined_grads: the expected gradients of the mean of the outputs, in the order of ``inputs_to_check``.
        """
        test = self._test()
        no_grad = set(no_grad_set or ())
        if user_defined_grads is None:
            test.check_grad(list(inputs_to_check), output_names, max_relative_error, no_grad, numeric_grad_delta)
            return
        gradients = test.gradients_of_mean(list(inputs_to_check), output_names, no_grad)
        for name, want in zip(inputs_to_check, user_defined_grads, strict=True):
            np.testing.assert_allclose(gradients[name], want, rtol=max_relative_error, atol=1e-6, err_msg=name)

    def check_grad_with_place(self, place: Any, *args: Any, **kwargs: Any) -> None:
        """Compare gradients; the place is the CPU, the rest as in `check_grad`."""
        self.check_grad(*args, **kwargs)
