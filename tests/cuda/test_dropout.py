"""Dropout on the emulator draws the numbers of the host, in every dtype and at every length of a block of words."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import Clock, Stream
from fluidnb_kernels import emulator
from fluidnb_kernels.random.dropout import CUDA, _width, draw
from tests.cuda.operands import numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 2500])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_the_numbers_are_those_of_the_host(dtype: Any, size: int) -> None:
    for attrs in ({}, {"fix_seed": True, "seed": 7, "dropout_implementation": "upscale_in_train"}):
        twins("dropout", {"X": numbers(size).astype(dtype)}, {"dropout_prob": 0.3, **attrs}, ["Out", "Mask"])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision(dtype: Any) -> None:
    x = numbers(53).astype(dtype)
    twins("dropout", {"X": x}, {"dropout_prob": 0.25}, ["Out", "Mask"])
    twins("dropout_grad", {"Mask": np.ones(53, np.uint8), "Out@GRAD": x}, {"dropout_prob": 0.25}, ["X@GRAD"])


@pytest.mark.parametrize("test", [False, True])
@pytest.mark.parametrize("how", ["downgrade_in_infer", "upscale_in_train"])
@pytest.mark.parametrize("rate", [0.0, 0.25, 1.0])
def test_every_way(rate: float, how: str, test: bool) -> None:
    attrs = {"dropout_prob": rate, "dropout_implementation": how, "is_test": test}
    twins("dropout", {"X": numbers(33)}, attrs, ["Out", "Mask"])
    twins("dropout", {"X": numbers(33)}, attrs, ["Out"])
    mask = (numbers(33) > 0).astype(np.uint8)
    twins("dropout_grad", {"Mask": mask, "Out@GRAD": numbers(33, seed=2)}, attrs, ["X@GRAD"])


@pytest.mark.parametrize("size", [1, 16, 45])
@pytest.mark.parametrize("name, wide", [("float", 4), ("double", 2)])
def test_one_element_at_a_time_and_several(name: str, wide: int, size: int) -> None:
    x, made = numbers(size).astype(np.float32 if name == "float" else np.float64), []
    for n in (1, wide):
        out, mask, slope = np.zeros_like(x), np.zeros(size, np.uint8), np.zeros_like(x)
        draw(CUDA[f"dropout<{name}, {n}>"], Stream("y", Clock(1)), x, out, mask, 0.5, 0.5)
        CUDA[f"masked<{name}, {n}>"]((2,), (4,), 0, x, mask, slope, np.float64(0.5), np.int64(size))
        np.testing.assert_array_equal(slope, out)
        made.append((out, mask))
    np.testing.assert_array_equal(made[0][0], made[1][0])
    np.testing.assert_array_equal(made[0][1], made[1][1])


def test_how_many_are_taken_at_once() -> None:
    x, mask = np.zeros(64, np.float32), np.zeros(64, np.uint8)
    assert [_width(x, mask[i:], x) for i in (0, 1, 8)] == [4, 1, 4]
    assert [_width(x[i:], mask, x) for i in (0, 1, 4)] == [4, 1, 4]
