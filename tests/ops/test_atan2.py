"""atan2: angles in all four quadrants."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, family, values

Y, X = values(3, 4), values(3, 4, seed=1)

family(globals(), Differentiable, {
    "atan2": {"inputs": {"X1": Y, "X2": X}, "outputs": {"Out": np.arctan2(Y, X)}},
    "atan2/far": {"inputs": {"X1": Y * 100, "X2": X + 3}, "outputs": {"Out": np.arctan2(Y * 100, X + 3)}},
})  # fmt: skip


def test_on_the_axes():
    y, x = np.array([0.0, 0.0, 1.0, -1.0, -0.0]), np.array([1.0, -1.0, 0.0, 0.0, -1.0])
    assert run_op("atan2", {"X1": y, "X2": x})["Out"].tolist() == np.arctan2(y, x).tolist()


def test_shapes_are_the_same():
    with pytest.raises(RuleError, match="X2"):
        run_op("atan2", {"X1": Y, "X2": X[:1]})


def test_whole_numbers_have_angles_in_float64():
    got = run_op("atan2", {"X1": np.array([1, -1]), "X2": np.array([1, 0])})["Out"]
    np.testing.assert_array_equal(got, np.array([np.pi / 4, -np.pi / 2]))
