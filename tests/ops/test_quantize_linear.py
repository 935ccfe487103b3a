"""quantize_linear and dequantize_linear: numbers that real Paddle 2.6.2 gives, one scale and several."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Forward, family

#: Halves among them.
X = np.array([[0.5, -3.0, 65 / 127, 3 / 127, 5 / 127, -3 / 127, 0.1]])
TWO = np.array([2.0])
WHOLE = np.array([[32.0, -128.0, 32.0, 2.0, 2.0, -2.0, 6.0]])
COLUMNS, SCALES = np.array([[1.0, 1.0, 1.0], [-4.0, 0.5, 0.25]]), np.array([1.0, 2.0, 4.0])

family(
    globals(),
    Forward,
    {
        "quantize_linear": {"inputs": {"X": X, "Scale": TWO, "ZeroPoint": 0 * TWO}, "outputs": {"Y": WHOLE}},
        "quantize_linear/away_from_zero": {
            "inputs": {"X": X[:, [0, 1, 6]], "Scale": TWO}, "attrs": {"round_type": 1},
            "outputs": {"Y": np.array([[32.0, -127.0, 6.0]])},
        },
        "quantize_linear/columns": {
            "inputs": {"X": COLUMNS, "Scale": SCALES}, "attrs": {"quant_axis": 1, "bit_length": 4},
            "outputs": {"Y": np.array([[7.0, 4.0, 2.0], [-8.0, 2.0, 0.0]])},
        },
        "quantize_linear/observed": {
            "inputs": {"X": X, "Scale": TWO}, "attrs": {"only_observer": True}, "outputs": {"Y": X},
        },
        "dequantize_linear": {"inputs": {"X": WHOLE, "Scale": TWO}, "outputs": {"Y": WHOLE * 2 / 127}},
        "dequantize_linear/columns": {
            "inputs": {"X": COLUMNS, "Scale": SCALES}, "attrs": {"quant_axis": -1 + 2, "bit_length": 4},
            "outputs": {"Y": COLUMNS * SCALES / 7},
        },
    },
)  # fmt: skip


def test_a_scale_for_each_element_of_the_axis() -> None:
    with pytest.raises(RuleError, match="must fit quant_axis(.|\n)*expected: +3"):
        run_op("quantize_linear", {"X": COLUMNS, "Scale": TWO}, {"quant_axis": 1})
