"""Pooling on the emulator beyond the cases of OpTests: half precision, large windows, layouts, and NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import grid
from tests.cuda.operands import numbers, twins
from tests.ops.cases import distinct

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

Array = np.ndarray[Any, Any]
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
name_of: Any = lambda d: np.dtype(d).name  # noqa: E731


def both_ways(type: str, x: Array, **attrs: Any) -> Array:
    """A pooling and its gradient."""
    out = twins(type, {"X": x}, attrs, ["Out"]).find_var("Out@out").value.array
    given = {"X": x, "Out": out, "Out@GRAD": numbers(*out.shape, seed=3).astype(x.dtype)}
    twins(type + "_grad", given, attrs, ["X@GRAD"])
    del given["Out"]
    again = {**given, "grad_x@GRAD": numbers(*x.shape, seed=4).astype(x.dtype)}
    twins(type + "_double_grad", again, attrs, ["grad_out@GRAD"])
    return out


def indexed(type: str, x: Array, **attrs: Any) -> None:
    """A pooling with places and its gradient."""
    scope = twins(type, {"X": x}, attrs, ["Out", "Mask"])
    out, mask = (scope.find_var(f"{slot}@out").value.array for slot in ("Out", "Mask"))
    given = {"X": x, "Mask": mask, "Out@GRAD": numbers(*out.shape, seed=3).astype(x.dtype)}
    twins(type + "_grad", given, attrs, ["X@GRAD"])
    again = {"Mask": mask, "DDX": numbers(*x.shape, seed=4).astype(x.dtype)}
    twins(type + "_grad_grad", again, attrs, ["DDOut"])


KINDS = pytest.mark.parametrize("kind", ["max", "avg"])


@KINDS
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_dtype(dtype: Any, kind: str) -> None:
    x = distinct(2, 3, 7, 5).astype(dtype)
    attrs = {"pooling_type": kind, "ksize": [3, 2], "strides": [2, 1], "paddings": [1, 1]}
    both_ways("pool2d", x, **attrs)
    both_ways("pool2d", np.ascontiguousarray(x.transpose(0, 2, 3, 1)), data_format="NHWC", **attrs)
    both_ways("pool2d", x, pooling_type=kind, ksize=[7, 5])
    twins("spp", {"X": x}, {"pooling_type": kind, "pyramid_height": 2}, ["Out"])
    if kind == "max":
        indexed("max_pool2d_with_index", x, ksize=[3, 2], strides=[2, 1], paddings=[1, 1])


@KINDS
@pytest.mark.parametrize("sizes", [(9, 8), (64, 2), (100, 1), (1, 150), (70, 3)])
def test_windows_that_a_warp_takes(sizes: tuple[int, int], kind: str) -> None:
    x = distinct(2, 2, *sizes)
    both_ways("pool2d", x, pooling_type=kind, ksize=[1, 1], global_pooling=True)
    both_ways("pool2d", x, pooling_type=kind, ksize=list(sizes), paddings=[s // 2 for s in sizes], exclusive=False)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    both_ways("pool2d", last, pooling_type=kind, ksize=[1, 1], global_pooling=True, data_format="NHWC")
    indexed("max_pool2d_with_index", x, ksize=list(sizes), strides=[2, 1], paddings=[s // 3 for s in sizes])


@pytest.mark.parametrize("size", [[3, 4], [2, 2], [5, 6], [4, 1]])
def test_windows_that_share_out_the_image(size: list[int]) -> None:
    x = distinct(2, 2, 5, 6)
    both_ways("pool2d", x, pooling_type="avg", ksize=size, adaptive=True)
    both_ways("pool2d", x, pooling_type="max", ksize=[2, 3], adaptive=True)
    indexed("max_pool2d_with_index", x, ksize=size, adaptive=True)
    indexed("max_pool3d_with_index", distinct(1, 2, 3, 5, 4), ksize=[2, 3, 3], adaptive=True)
    both_ways("pool3d", distinct(2, 3, 4, 5, 2), pooling_type="avg", ksize=[2, 3, 2], adaptive=True)


@pytest.mark.parametrize("low", [0.0, -2.0])
@pytest.mark.parametrize("ksize", [[2, 2], [4, 4], [3, 3]])
def test_the_first_of_several_largest(ksize: list[int], low: float) -> None:
    x = np.full((1, 2, 40, 4), low)
    x[0, 0, 0, 1] = x[0, 0, 1, 0] = x[0, 0, 3, 3] = 1.0
    for attrs in ({"ksize": ksize, "strides": ksize}, {"ksize": ksize}, {"ksize": [40, 4]}):
        both_ways("pool2d", x, pooling_type="max", **attrs)
        indexed("max_pool2d_with_index", x, **attrs)


@pytest.mark.parametrize("ksize", [[2, 2], [10, 10]])
def test_empty_windows_and_numbers_that_are_none(ksize: list[int]) -> None:
    how = {"ksize": ksize, "strides": [k + 1 for k in ksize], "paddings": [k // 2 for k in ksize], "ceil_mode": True}
    for kind in ("max", "avg"):
        both_ways("pool2d", distinct(1, 1, 2, 2), pooling_type=kind, **how)
    x = distinct(1, 2, 12, 10)
    x[0, 0, 3, 3], x[0, 1, :6, :6] = np.nan, -np.inf
    for attrs in ({"ksize": [2, 2]}, {"ksize": [10, 10]}, {"ksize": [3, 3], "paddings": [1, 1]}):
        out = twins("pool2d", {"X": x}, {"pooling_type": "max", **attrs}, ["Out"]).find_var("Out@out").value.array
        assert np.isnan(out).any()
        twins("max_pool2d_with_index", {"X": x}, {"strides": [1, 1], **attrs}, ["Out", "Mask"])


@KINDS
@pytest.mark.parametrize("height", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float16], ids=name_of)
def test_pyramids(dtype: Any, height: int, kind: str) -> None:
    width = 6 if dtype is np.float16 else 5  # one with windows in the padding alone: their lowest number is float32's
    x, attrs = distinct(2, 3, 7, width).astype(dtype), {"pooling_type": kind, "pyramid_height": height}
    out = twins("spp", {"X": x}, attrs, ["Out"]).find_var("Out@out").value.array
    given = {"X": x, "Out": out, "Out@GRAD": numbers(*out.shape, seed=3).astype(dtype)}
    twins("spp_grad", given, attrs, ["X@GRAD"])


def test_threads_go_round_and_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "BLOCKS", 1)
    x = distinct(2, 3, 15, 14)
    for kind in ("max", "avg"):
        both_ways("pool2d", x, pooling_type=kind, ksize=[2, 2])
        both_ways("pool2d", x, pooling_type=kind, ksize=[9, 9])
        both_ways("pool2d", x[:0], pooling_type=kind, ksize=[2, 2])
        both_ways("pool3d", distinct(1, 2, 4, 3, 5), pooling_type=kind, ksize=[2, 2, 3], paddings=[1, 0, 1])
