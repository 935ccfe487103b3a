"""Activations on the emulator beyond the cases of their OpTests: every dtype, odd sizes, addresses that are not
aligned, in place, and numbers that are none."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.activation import functions, piecewise, smooth, special
from fluidnb_kernels.activation.table import CUDA
from fluidnb_kernels.cuda import vector
from tests.cuda.twins import run_twins
from tests.tools.sampling import sample

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

ROWS = {
    name: row
    for module in (functions, piecewise, smooth, special)
    for name, row in module.ROWS.items()
}
# The slope of elu is Out + alpha on the host, where half precision has rounded Out; its kernel computes it from X.

#: Where a function is defined, else everything from -3 to 3.
DOMAINS = {
    **dict.fromkeys(("log", "sqrt", "rsqrt", "log2", "log10", "lgamma", "digamma"), (0.2, 4.0)),
    "acosh": (1.2, 4.0), **dict.fromkeys(("acos", "asin", "atanh"), (-0.9, 0.9)), "logit": (0.1, 0.9),
    "tan": (-1.2, 1.2),
}  # fmt: skip


def operands(name: str, size: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Numbers for which a function has a value."""
    low, high = DOMAINS.get(name, (-3.0, 3.0))
    return np.random.default_rng(size).uniform(low, high, size).astype(dtype)


def both(name: str, x: np.ndarray[Any, Any], place: str = "y") -> None:
    """Run a function and its gradient both ways."""
    forward = OpDesc(name, {"X": ["x"]}, {"Out": [place]}, {})
    check_desc(get_op(name), forward)
    scope = Scope()
    scope.var("x").value = LoDTensor(x.copy())
    run_twins(forward, scope)
    if x.dtype.kind in "iu":
        return
    for variable in ("y", "g"):
        if scope.find_var(variable) is None:
            scope.var(variable).value = LoDTensor(x.copy())
    needs = {slot: [{"X": "x", "Out": "y"}[slot]] for slot in ROWS[name].needs}
    run_twins(OpDesc(f"{name}_grad", {**needs, "Out@GRAD": ["g"]}, {"X@GRAD": ["dx"]}, dict(forward.attrs)), scope)


@pytest.mark.parametrize("name", ROWS)
def test_single_precision_of_an_odd_size(name: str) -> None:
    both(name, operands(name, 1027, np.float32))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", sample([name for name in ROWS if name != "elu"], 12))
def test_half_precision(name: str, dtype: type) -> None:
    both(name, operands(name, 77, dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["int32", "int64"])
@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if "int32" in row.dtypes])
def test_whole_numbers(name: str, dtype: type) -> None:
    both(name, np.arange(-20, 21).astype(dtype))


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu"])
def test_in_place(name: str) -> None:
    both(name, operands(name, 70, np.float32), place="x")


@pytest.mark.parametrize("name", ["relu", "abs", "square", "sigmoid", "leaky_relu", "hard_shrink"])
def test_numbers_that_are_none(name: str) -> None:
    both(name, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32))


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_loads_are_as_wide_as_the_address_allows(shift: int) -> None:
    memory = np.zeros(128, np.float32)
    start = (-memory.ctypes.data % 16) // 4 + shift
    x = memory[start : start + 33]
    x[...] = np.linspace(-2, 2, 33)
    assert vector(x) == (1 if shift else 4)
    y = np.zeros(40, np.float32)[(-memory.ctypes.data % 16) // 4 :][:33]
    CUDA[f"unary<f::relu, float, {vector(x, y)}>"]((1,), (256,), 0, x, y, *[np.float64(0)] * 3, np.int64(33))
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_more_elements_than_threads() -> None:
    x = operands("square", 70_001, np.float64)
    y = np.zeros_like(x)
    CUDA["unary<f::square, double, 1>"]((3,), (64,), 0, x, y, *[np.float64(0)] * 3, np.int64(x.size))
    np.testing.assert_array_equal(y, x * x)
