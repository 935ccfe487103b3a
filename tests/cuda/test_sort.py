"""Sorting on the emulator: lines below and above what a block sorts, both directions, ties, numbers that are none."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb_kernels import emulator
from fluidnb_kernels.tensor.order import TILE
from tests.cuda.operands import numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

SLOTS = ["Out", "Indices"]


def run_sort(x: np.ndarray[Any, Any], axis: int = -1) -> None:
    """Sort both ways in both directions."""
    for descending in (False, True):
        twins("argsort", {"X": x}, {"axis": axis, "descending": descending}, SLOTS)


@pytest.mark.parametrize("shape", [(1,), (3, 2), (40, 33), (2, 600), (5, 0), (0, 4), (2, TILE)])
def test_lines_that_a_block_sorts(shape: tuple[int, ...]) -> None:
    run_sort(numbers(*shape).round(1))


@pytest.mark.parametrize("n", [TILE + 1, 2 * TILE, 5 * TILE - 3])
def test_long_lines(n: int) -> None:
    run_sort(numbers(2, n).round(2).astype(np.float32))


def test_dimensions_that_are_not_the_last() -> None:
    run_sort(numbers(4, 7, 5).round(1), 1)
    run_sort(numbers(TILE + 9, 3).round(2), 0)


@pytest.mark.parametrize("n", [9, 2 * TILE + 5])
def test_numbers_that_are_none(n: int) -> None:
    x = numbers(n).round(1)
    x[::3] = np.nan
    x[1::7] = np.inf
    x[2::5] = -0.0
    run_sort(x)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int32, np.int64])
def test_other_dtypes(dtype: Any) -> None:
    run_sort((numbers(3, 50) * 9).astype(dtype))
    run_sort((numbers(TILE + 70) * 99).astype(dtype))


@pytest.mark.parametrize("n", [9, TILE + 1])
def test_one_output_alone(n: int) -> None:
    for slot in SLOTS:
        twins("argsort", {"X": numbers(n)}, {}, {**dict.fromkeys(SLOTS, "@EMPTY@"), slot: "wanted"})


def test_its_gradient() -> None:
    x = numbers(3, 40)
    at = x.argsort(1)
    twins("argsort_grad", {"X": x, "Indices": at, "Out@GRAD": numbers(3, 40, seed=2)}, {"axis": 1}, ["X@GRAD"])
