"""Random tensors on the emulator are those of the host: at every size, in every dtype, with seeds and without."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import Binder, Clock, OpDesc, Stream, check_desc, get_op, unit
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.testing.eager import Fresh
from fluidnb.values import LoDTensor
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from fluidnb_kernels.random.launch import CUDA, launch
from fluidnb_kernels.random.random_crop import later
from tests.cuda.devices import OnDevice
from tests.cuda.operands import emulated, numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

FLOATS = ("float16", "bfloat16", "float32", "float64")
ROW = {"shape": [-1, 5], "input_dim_idx": 0}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 8, 9, 1000])
def test_uniform_numbers_are_the_same_bits(size: int, dtype: str) -> None:
    got, want = np.empty(size, dtype), np.empty(size, dtype)
    kernel = CUDA[f"uniform<{'float' if dtype == 'float32' else 'double'}>"]
    launch(kernel, Stream("x", Clock(3)), 2, (32,), got, np.float64(1), np.float64(0), np.int64(size))
    unit(Stream("x", Clock(3)), want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [[0], [1], [7], [13], [3, 11], [300]])
def test_every_dtype(shape: list[int], dtype: str) -> None:
    attrs: dict[str, Any] = {"shape": shape, "dtype": dtype}
    for seed in (0, 7):
        twins("uniform_random", {}, {**attrs, "min": -0.3, "max": 1.7, "seed": seed}, ["Out"])
        twins("gaussian_random", {}, {**attrs, "mean": 2.0, "std": 0.3, "seed": seed}, ["Out"])
    twins("truncated_gaussian_random", {}, {**attrs, "mean": 2.0, "std": 0.3}, ["Out"])


def test_bits_of_half_precision() -> None:
    for dtype in ("float16", "bfloat16"):
        attrs = {"shape": [200], "dtype": dtype, "min": -0.3, "max": 1.7}
        scope = twins("uniform_random", {}, attrs, ["Out"])
        got = emulated("uniform_random", {}, attrs, ["Out"])["Out"]
        np.testing.assert_array_equal(got, scope.find_var("Out@out").value.array)
        assert got.dtype == np_dtype(dtype)


def test_a_diagonal() -> None:
    attrs = {"shape": [4, 9], "diag_num": 3, "diag_step": 2, "diag_val": 5.0}
    twins("uniform_random", {}, attrs, ["Out"])


@pytest.mark.parametrize("x", [np.zeros((6, 2), np.float32), np.zeros((3, 2), np.int64)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_as_many_rows_as_another(dtype: str, x: Any) -> None:
    twins("uniform_random_batch_size_like", {"Input": x}, {**ROW, "dtype": dtype, "max": 3.0}, ["Out"])
    twins("gaussian_random_batch_size_like", {"Input": x}, {**ROW, "dtype": dtype, "std": 9.0}, ["Out"])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_whole_numbers_and_orders(dtype: str) -> None:
    twins("randint", {}, {"shape": [50], "low": -3, "high": 9, "dtype": dtype}, ["Out"])
    twins("randperm", {}, {"n": 50, "dtype": dtype}, ["Out"])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (70, 5), (33, 67)])
def test_classes(shape: tuple[int, int], dtype: Any) -> None:
    x = numbers(*shape, low=0.0)
    twins("sampling_id", {"X": (x / x.sum(1, keepdims=True)).astype(dtype)}, {}, ["Out"])
    twins("sampling_id", {"X": x.astype(dtype)}, {"min": 0.25, "max": 0.5}, ["Out"])
    twins("sampling_id", {"X": np.zeros(shape, dtype)}, {}, ["Out"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.float16])
@pytest.mark.parametrize("part", [[4], [2, 3], [5, 2, 3], [1, 1]])
def test_parts_of_instances(part: list[int], dtype: Any) -> None:
    x = (numbers(3, 5, 6, 7) * 100).astype(dtype)
    for seed in (np.array([5]), np.array([-3], np.int32), np.array([0])):
        twins("random_crop", {"X": x, "Seed": seed}, {"shape": part}, ["Out", "SeedOut"])
    twins("random_crop", {"X": x, "Seed": np.array([9])}, {"shape": part}, ["Out"])


def test_a_number_that_would_favour_the_first_places_is_drawn_again() -> None:
    last = 2**31 - 3  # the largest but one that the generator gives
    seed = last * pow(48271, -1, 2**31 - 1) % (2**31 - 1)
    assert later(seed, 1) == last and (last - 1) // ((2**31 - 3) // 7) == 7, "one place too far"
    twins("random_crop", {"X": numbers(2, 9), "Seed": np.array([seed])}, {"shape": [3]}, ["Out", "SeedOut"])


def test_a_seed_that_goes_on_by_itself() -> None:
    desc = OpDesc("random_crop", {"X": ["x"], "Seed": ["s"]}, {"Out": ["y"], "SeedOut": ["s"]}, {"shape": [3]})
    check_desc(get_op("random_crop"), desc)
    results: list[Any] = []
    for memory in (Fresh(Clock(1)), OnDevice(Clock(1))):
        scope = Scope()
        scope.var("x").value = LoDTensor(numbers(4, 9))
        scope.var("s")  # no value yet
        calls = Binder(LoweredOp(desc, 0, 0), memory, scope).bind()
        for _ in range(2):
            for function, args, kw in calls:
                function(*args, **kw)
            results.append([scope.find_var(n).value.array.tolist() for n in ("y", "s")])
    assert results[:2] == results[2:] and results[0] != results[1]
