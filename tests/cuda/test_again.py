"""Gradients of activations' gradients on the emulator: every dtype, odd sizes, addresses that are not aligned."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb_kernels import emulator
from fluidnb_kernels.activation.table import CUDA_AGAIN
from tests.cuda.operands import numbers, twins
from tests.tools.sampling import sample

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

#: name -> the slot that its gradient reads, and what the gradient of that reads beside it.
ROWS = {
    "exp": ("Out", "grad_out"), "leaky_relu": ("X", ""), "log": ("X", "grad_out"), "relu": ("Out", ""),
    "rsqrt": ("Out", "grad_x"), "sigmoid": ("Out", "fwd_grad_out"), "sqrt": ("Out", "grad_x"),
    "square": ("X", "grad_out"), "tanh": ("Out", "grad_out"),
}  # fmt: skip


def run_again(name: str, size: int, dtype: Any, wanted: slice = slice(None)) -> None:
    """Run the gradient of a gradient both ways."""
    slot, given = ROWS[name]
    slots = [slot, "grad_x@GRAD", *([given] if given else [])]
    operands = {s: numbers(size, seed=i, low=0.5, high=2.0).astype(dtype) for i, s in enumerate(slots)}
    back = f"{given}@GRAD" if given not in ("", "grad_x") else "grad_out@GRAD"
    outputs = [back, f"{slot}@GRAD"] if given else [back]
    twins(f"{name}_grad_grad", operands, {"alpha": 0.1} if name == "leaky_relu" else {}, outputs[wanted])


@pytest.mark.parametrize("name", ROWS)
def test_odd_sizes(name: str) -> None:
    run_again(name, 1027, np.float32)
    run_again(name, 0, np.float32)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64], ids=["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", sample(list(ROWS), 3))
def test_other_dtypes(name: str, dtype: Any) -> None:
    run_again(name, 37, dtype)


@pytest.mark.parametrize("wanted", [slice(0, 1), slice(1, 2)])
def test_one_output_alone(wanted: slice) -> None:
    run_again("sigmoid", 9, np.float64, wanted)


def test_loads_are_one_element_wide_where_addresses_want_it() -> None:
    whole = numbers(4, 40)
    v, given, ddx, out = (row[1:36] for row in whole)
    want = 2.0 * given * ddx
    CUDA_AGAIN["again<f::square, double>"]((1,), (32,), 0, v, given, ddx, out, np.int32(0), np.int64(35))
    np.testing.assert_array_equal(out, want)
