"""pow, prelu and maxout on the emulator beyond the cases of their OpTests."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb_kernels import emulator
from tests.cuda.operands import in_place, numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("factor", [0.0, 1.0, 2.0, -1.5, 3.0])
def test_powers(factor: float, dtype: Any) -> None:
    x, g = numbers(301, low=0.5, high=2.0).astype(dtype), numbers(301, seed=2).astype(dtype)
    twins("pow", {"X": x}, {"factor": factor}, ["Out"])
    twins("pow_grad", {"X": x, "Out@GRAD": g}, {"factor": factor}, ["X@GRAD"])


def test_powers_of_signed_numbers() -> None:
    x = np.array([-2.0, -1.0, -0.0, 0.0, np.inf, -np.inf, np.nan])
    for factor in (3.0, 2.5, -1.0):  # for a power of 0.5 some versions of numpy take the root
        twins("pow", {"X": x}, {"factor": factor}, ["Out"])
        twins("pow_grad", {"X": x, "Out@GRAD": np.ones(7)}, {"factor": factor}, ["X@GRAD"])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_powers_of_whole_numbers(dtype: Any) -> None:
    for factor in (0.0, 1.0, 2.0, 5.0, 70.0):
        twins("pow", {"X": np.arange(-9, 10, dtype=dtype)}, {"factor": factor}, ["Out"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_power_that_a_variable_holds(dtype: Any) -> None:
    x, factor = numbers(9, low=0.5), np.array([2.5], dtype)
    twins("pow", {"X": abs(x), "FactorTensor": factor}, {}, ["Out"])
    twins("pow_grad", {"X": abs(x), "FactorTensor": factor, "Out@GRAD": x}, {}, ["X@GRAD"])


def test_in_place() -> None:
    x = numbers(9)
    scope = in_place("pow", {"X": x}, {"factor": 2.0}, {"Out": "X"})
    np.testing.assert_array_equal(scope.find_var("X").value.array, x * x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode, order, count", [
    ("all", "NCHW", 1), ("channel", "NCHW", 3), ("channel", "NHWC", 5), ("element", "NCHW", 60)])  # fmt: skip
def test_learned_slopes(mode: str, order: str, count: int, dtype: Any) -> None:
    x, alpha, g = (numbers(*s, seed=i).astype(dtype) for i, s in enumerate([(2, 3, 4, 5), (count,), (2, 3, 4, 5)]))
    x.reshape(-1)[:2] = 0, np.nan
    attrs = {"mode": mode, "data_format": order}
    twins("prelu", {"X": x, "Alpha": alpha}, attrs, ["Out"])
    x.reshape(-1)[1] = -1
    inputs = {"X": x, "Alpha": alpha, "Out@GRAD": g}
    twins("prelu_grad", inputs, attrs, ["X@GRAD", "Alpha@GRAD"])
    for slot in ("X@GRAD", "Alpha@GRAD"):
        twins("prelu_grad", inputs, attrs, [slot])


def test_a_slope_of_many_elements_and_of_none() -> None:
    for rows in (9000, 0):
        x = numbers(rows, 3)
        twins("prelu_grad", {"X": x, "Alpha": numbers(1), "Out@GRAD": x}, {"mode": "all"}, ["Alpha@GRAD"])
        twins("prelu_grad", {"X": x, "Alpha": numbers(3), "Out@GRAD": x}, {"mode": "channel"}, ["Alpha@GRAD"])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [1, -1])
def test_the_largest_of_groups(axis: int, dtype: Any) -> None:
    x = numbers(2, 6, 5, 6).round(1).astype(dtype)
    attrs = {"groups": 3, "axis": axis}
    out = np.array(twins("maxout", {"X": x}, attrs, ["Out"]).find_var("Out@out").value.array)
    twins("maxout_grad", {"X": x, "Out": out, "Out@GRAD": out}, attrs, ["X@GRAD"])
    if dtype is np.float64:
        x[0, 0] = np.nan
        twins("maxout", {"X": x}, attrs, ["Out"])
