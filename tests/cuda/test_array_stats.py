"""Statistics of tensors by kernels, beside numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.values.array_stats import ArrayStats, Numbers, Spread
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from fluidnb_kernels.device.array_stats import DeviceArrayStats
from fluidnb_kernels.emulator.raw import ORDERS
from tests.cuda.operands import numbers

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

HOST, DEVICE = ArrayStats(), DeviceArrayStats()
FLOATS = ("float16", "float32", "float64", "bfloat16")
DTYPES = (*FLOATS, "bool", "uint8", "int8", "int16", "int32", "int64")


def some(dtype: str, *shape: int, odd: bool = False) -> np.ndarray[Any, Any]:
    """Numbers of both signs with some zeros among them, and if wanted some that are none."""
    x = numbers(*shape, low=-90.0, high=100.0)
    x[np.abs(x) < 5] = 0.0
    if odd:
        x.reshape(-1)[[0, 3, -1]] = np.nan
        x.reshape(-1)[[1, -2]] = np.inf
        x.reshape(-1)[2] = -np.inf
    return x.astype(np_dtype(dtype)) if dtype != "uint8" else np.abs(x).astype("uint8")


def alike(got: Numbers | Spread, want: Numbers | Spread) -> None:
    """The same counts and ends, and sums that differ in the last digits at most."""
    for name, a, b in zip(want._fields, got, want, strict=True):
        if name in ("norm", "mean", "std") and b is not None:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=name)
        else:
            assert a == b, name


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_are_those_of_numpy(dtype: str, order: str) -> None:
    for shape in ((9,), (70, 30), (3, 41, 100)):
        for odd in (False, True) if dtype in FLOATS else (False,):
            x = some(dtype, *shape, odd=odd)
            with emulator.running(order):
                alike(DEVICE.numbers(x), HOST.numbers(x))
                np.testing.assert_equal(DEVICE.norm(x, x), np.nan if odd else 0.0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_spread_is_that_of_numpy(dtype: str, order: str) -> None:
    for shape, sample in (((9,), 100), ((70, 30), 1 << 20), ((3, 41, 100), 1000)):
        for odd in (False, True) if dtype in FLOATS else (False,):
            x = some(dtype, *shape, odd=odd)
            with emulator.running(order):
                alike(DEVICE.spread(x, sample), HOST.spread(x, sample))


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e9, 1e150])
def test_each_element_falls_into_the_bin_of_numpy(scale: float) -> None:
    edges = np.linspace(-1.0, 2.3, 17)
    x = np.concatenate([edges, np.nextafter(edges[1:-1], 9), np.nextafter(edges[1:-1], -9), numbers(500)]) * scale
    assert DEVICE.spread(x, 1 << 20).histogram == HOST.spread(x, 1 << 20).histogram


def test_a_deviation_that_is_small_beside_the_mean() -> None:
    x = 1e8 + numbers(5000, low=-1e-3, high=1e-3)
    np.testing.assert_allclose(DEVICE.spread(x, 1 << 20).std, HOST.spread(x, 1 << 20).std, rtol=1e-9)


def test_where_all_elements_are_the_same_or_none_is_finite() -> None:
    for x in (np.full(100, 7.0), np.zeros(100), np.full(30, np.nan), np.full(30, -np.inf, "float32")):
        alike(DEVICE.numbers(x), HOST.numbers(x))
        alike(DEVICE.spread(x, 1 << 20), HOST.spread(x, 1 << 20))


def test_totals() -> None:
    x = np.array([1.0, -2.0, 0.0, np.inf, -np.inf, -np.inf, np.nan, 4.0], "float32")
    assert DEVICE.totals(x) == (1, 1, 2, 1, -2.0, 4.0, 3.0, 7.0, 21.0)
    assert DEVICE.totals(x[:3], np.array([1.0, 0.0, -5.0], "float32")) == (0, 0, 0, 1, -2.0, 5.0, 3.0, 7.0, 29.0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_one_odd_element_is_found_wherever_it_is(dtype: str, order: str) -> None:
    clean = some(dtype, 7000)
    clean[0] = 1e3 if dtype == "float16" else 3e38  # large is not odd
    arrays = [clean, clean[:0]]
    for at, value in ((0, np.nan), (4000, np.inf), (6999, -np.inf)):
        arrays.append(clean.copy())
        arrays[-1][at] = value
    with emulator.running(order):
        assert DEVICE.odd(arrays) == HOST.odd(arrays) == [False, False, True, True, True]
    assert [DEVICE.holes(a) for a in arrays] == [HOST.holes(a) for a in arrays]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("limit", [0.1, 50.0, 89.0, 101.0, np.inf])
def test_limits(dtype: str, limit: float) -> None:
    for x in (some(dtype, 500), some(dtype, 500, odd=True), some(dtype, 500) / 2000, np.zeros(0, dtype)):
        assert DEVICE.beyond(x, limit) == HOST.beyond(x, limit)


def test_norms_of_differences_and_of_what_is_not_finite() -> None:
    x, y = numbers(40, 60), numbers(40, 60, seed=2)
    for dtype in ("float32", "float64"):
        a, b = x.astype(dtype), y.astype(dtype)
        np.testing.assert_allclose(DEVICE.norm(a, b), HOST.norm(a, b), rtol=1e-12)
    for value in (np.nan, np.inf, -np.inf):
        x[3, 3] = value
        np.testing.assert_equal(DEVICE.norm(x), HOST.norm(x))
    assert DEVICE.norm(x[:0]) == HOST.norm(x[:0]) == 0.0


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
def test_a_mark_tells_of_each_change(dtype: str) -> None:
    x = np.arange(600).reshape(20, 30).astype(np_dtype(dtype))
    marks = {DEVICE.mark(x, 1 << 14)}
    for at in (0, 299, 599):
        y = x.copy()
        y.reshape(-1)[at] = 0 if at else 1
        marks.add(DEVICE.mark(y, 1 << 14))
    assert len(marks) == 4
    for order in ORDERS:
        with emulator.running(order):
            assert DEVICE.mark(x.copy(), 1 << 14) in marks
    before = DEVICE.mark(x, 300)
    x[0, 1] = x[0, 0]
    assert DEVICE.mark(x, 300) == before  # every second one is looked at
    assert DEVICE.mark(x[:0], 300) == DEVICE.mark(x[:0].copy(), 300)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_a_mark_is_a_sum_of_mixed_bits(dtype: str) -> None:
    def mixed(i: int, bits: int) -> int:  # of Steele, Lea and Flood's SplitMix
        h = (bits + (i + 1) * 0x9E3779B97F4A7C15) % 2**64
        h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        h = (h ^ h >> 27) * 0x94D049BB133111EB % 2**64
        return h ^ h >> 31

    x = np.arange(1000).astype(dtype)
    want = [mixed(i, int(v)) for i, v in enumerate(x[::4])]
    assert DEVICE.mark(x, 250) == sum(want) % 2**64


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
def test_other_bits_are_seen_wherever_they_are(dtype: str) -> None:
    x = np.arange(6000).reshape(60, 100).astype(np_dtype(dtype))
    for order in ORDERS:
        with emulator.running(order):
            assert DEVICE.same(x, x.copy()) and DEVICE.same(x[:0], x[:0])
            for at in (0, 1300, 5999):
                y = x.copy()
                y.reshape(-1)[at] = 0 if at else 1
                assert not DEVICE.same(x, y) and not HOST.same(x, y)


def test_bits_are_compared_not_numbers() -> None:
    x = np.array([np.nan, 0.0], "float32")
    assert DEVICE.same(x, x.copy()) and not DEVICE.same(x, -x)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
def test_picked_elements(dtype: str, order: str) -> None:
    x = np.arange(2 * 3 * 4 * 5 * 6).reshape(2, 3, 4, 5, 6).astype(np_dtype(dtype))
    places = ([1], [2, 0], range(4), [4, 1, 1], [5, 0])
    with emulator.running(order):
        for axes in range(6):
            part = x[(*[0] * (5 - axes), ...)]
            got = DEVICE.picked(part, *places[5 - axes :])
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got, HOST.picked(part, *places[5 - axes :]))
            if axes > 1:
                turned = places[5 - axes :][::-1]
                np.testing.assert_array_equal(DEVICE.picked(part.T, *turned), HOST.picked(part.T, *turned))
    assert DEVICE.picked(x[0, 0, 0], [], [1]).shape == (0, 1)
