"""clip, as the developer guide's walk-through tests it: CONTRIBUTING points here as the model of an operator's test."""

import numpy as np
import pytest

from fluidnb.errors import OpValueError
from fluidnb.testing import OpTest
from tests.tools.refused import refused


class TestClipOp(OpTest):
    """Values on both sides of the bounds, none near a kink."""

    def setUp(self):
        x = np.linspace(-2, 2, 12).reshape(3, 4)
        self.op_type = "clip"
        self.inputs = {"X": x}
        self.attrs = {"min": -0.7, "max": 0.8}
        self.outputs = {"Out": np.minimum(np.maximum(x, np.float32(-0.7)), np.float32(0.8))}

    def test_check_output(self):
        self.check_output()

    def test_check_grad(self):
        self.check_grad("X", "Out")

    @pytest.mark.parametrize(
        ("attrs", "text"),
        [({"min": 1.0, "max": -1.0}, "max should be greater than min"), ({"min": 1.0}, "Attribute 'max' is required!")],
    )
    def test_mistakes(self, attrs, text):
        self.attrs = attrs
        with refused(OpValueError, text):
            self.check_output()
