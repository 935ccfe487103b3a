"""Views, facts, ranges, diagonals and rolls on the emulator, beyond the cases of their OpTests."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import OpDesc
from fluidnb.runtime import Scope
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.emulator import EmulatorError
from tests.cuda.operands import emulated, numbers, twins
from tests.cuda.twins import run_twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

TESTS = ("isfinite", "isinf", "isnan")
HALF = (np.float16, ml_dtypes.bfloat16)


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, *HALF])
def test_tests_of_numbers(name: str, dtype: Any) -> None:
    for odd in (0.0, np.nan, np.inf, -np.inf):
        for at in (5, 76):  # among those that are loaded together, and behind them
            x = numbers(77)
            x[at] = odd
            for type in (name, name + "_v2"):
                twins(type, {"X": x.astype(dtype)}, {}, ["Out"])


@pytest.mark.parametrize("name", TESTS)
def test_tests_of_whole_numbers_and_of_nothing(name: str) -> None:
    for x in (np.arange(5), np.zeros((0, 2), np.float32), np.zeros((0, 2), np.int32)):
        twins(name, {"X": x}, {}, ["Out"])
        twins(name + "_v2", {"X": x}, {}, ["Out"])


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 5)])
def test_facts(shape: tuple[int, ...]) -> None:
    twins("shape", {"Input": numbers(*shape)}, {}, ["Out"])
    twins("size", {"Input": numbers(*shape)}, {}, ["Out"])
    twins("is_empty", {"X": numbers(*shape)}, {}, ["Out"])


def test_views() -> None:
    x = numbers(2, 1, 3)
    for type, attrs in (("squeeze", {"axes": [1]}), ("unsqueeze", {"axes": [0]}), ("flatten", {"axis": 2}),
                        ("reshape", {"shape": [3, -1]})):  # fmt: skip
        out = twins(type, {"X": x}, attrs, ["Out"]).find_var("Out@out").value.array
        twins(type + "_grad", {"X": x, "Out@GRAD": np.array(out)}, attrs, ["X@GRAD"])
        twins(type + "2", {"X": x}, attrs, ["Out", "XShape"])
    twins("reshape2_grad_grad", {"DOut": x, "DDX": numbers(6)}, {}, ["DDOut"])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_ranges(dtype: str) -> None:
    one = [np.array([v], dtype) for v in (3, 40, 2)]
    twins("range", dict(zip(("Start", "End", "Step"), one, strict=True)), {}, ["Out"])
    back = [np.array([v], dtype) for v in (5, -9, -3)]
    twins("range", dict(zip(("Start", "End", "Step"), back, strict=True)), {}, ["Out"])


@pytest.mark.parametrize("n", [1, 2, 7, 300])
@pytest.mark.parametrize("dtype", [-1, 0, 2, 3, 5, 6])
def test_evenly_spaced_numbers(n: int, dtype: int) -> None:
    inputs = {"Start": np.array([-1.0], "float32"), "Stop": np.array([8.5], "float32"), "Num": np.array([n], "int32")}
    twins("linspace", inputs, {"dtype": dtype}, ["Out"])


def test_lists_of_values() -> None:
    twins("assign_value", {}, {"shape": [2, 2], "dtype": "int64", "int64_values": [2**40, 1, 2, 3]}, ["Out"])
    twins("fill", {}, {"shape": [3], "dtype": "float32", "value": [1.0, 2.5, -1.0]}, ["Out"])


def test_numbers_of_a_share() -> None:
    for dtype in (np.int32, np.int64):
        x = np.arange(20, dtype=dtype)[:, None]
        twins("shard_index", {"X": x}, {"index_num": 20, "nshards": 3, "shard_id": 2, "ignore_value": -7}, ["Out"])


def test_a_number_outside_the_table_stops_the_kernel() -> None:
    with pytest.raises(EmulatorError, match="trap"):
        emulated("shard_index", {"X": np.array([[20]])}, {"index_num": 20, "nshards": 2, "shard_id": 0}, ["Out"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_diagonals(offset: int, dtype: Any) -> None:
    x, at = (numbers(5, 4) * 9).astype(dtype), {"offset": offset}
    twins("diag_v2", {"X": x}, at, ["Out"])
    twins("diag_v2", {"X": x[0]}, {**at, "padding_value": 3.0}, ["Out"])
    twins("diag_embed", {"Input": x}, at, ["Out"])
    twins("diag_embed", {"Input": x}, {**at, "dim1": 0, "dim2": 2}, ["Out"])
    for lower in (False, True):
        twins("tril_triu", {"X": x}, {"diagonal": offset, "lower": lower}, ["Out"])


def test_gradients_of_diagonals() -> None:
    x, v = numbers(5, 4), numbers(4)
    twins("diag_v2_grad", {"X": x, "Out@GRAD": v}, {"offset": 0}, ["X@GRAD"])
    twins("diag_v2_grad", {"X": v, "Out@GRAD": numbers(5, 5)}, {"offset": 1}, ["X@GRAD"])
    twins("diag_embed_grad", {"Out@GRAD": numbers(3, 4, 4)}, {"offset": -1}, ["Input@GRAD"])
    twins("tril_triu_grad", {"Out@GRAD": x}, {"diagonal": 1}, ["X@GRAD"])
    twins("trace_grad", {"Input": x, "Out@GRAD": numbers(1)}, {}, ["Input@GRAD"])


def test_traces() -> None:
    for x in (numbers(5, 4), (numbers(4, 3, 5) * 9).astype(np.int32), numbers(4, 3, 5).astype(np.float16)):
        for attrs in ({}, {"offset": 2, "axis1": -1, "axis2": 0}, {"offset": 9}):
            twins("trace", {"Input": x}, attrs, ["Out"])


def test_new_diagonals() -> None:
    twins("diag", {"Diagonal": numbers(5)}, {}, ["Out"])
    twins("eye", {}, {"num_rows": 5, "num_columns": 3, "dtype": "int64"}, ["Out"])
    twins("eye", {}, {"num_rows": 0}, ["Out"])


@pytest.mark.parametrize("shape", [(5,), (4, 3, 2), (0, 2)])
def test_rolls(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    for shifts, axes in ([3], []), ([-1], [0]), ([8], [-1]), ([2, -1, 1], [0, 0, -1]), ([0], [0]):
        attrs = {"shifts": shifts, "axis": axes}
        twins("roll", {"X": x}, attrs, ["Out"])
        twins("roll_grad", {"X": x, "Out@GRAD": x}, attrs, ["X@GRAD"])


def test_rolls_by_a_variable() -> None:
    twins("roll", {"X": numbers(7, 2), "ShiftsTensor": np.array([3])}, {"axis": [0]}, ["Out"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, *HALF])
def test_sums_of_columns(dtype: Any) -> None:
    scope, names = Scope(), ["a", "b", "c"]
    for i, name in enumerate(names):
        scope.var(name).value = LoDTensor((numbers(4, 6, seed=i) * 9).astype(dtype))
    run_twins(OpDesc("partial_sum", {"X": names}, {"Out": ["y"]}, {"start_index": -4, "length": 3}), scope)
