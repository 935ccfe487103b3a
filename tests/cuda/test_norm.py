"""Normalisation on the emulator beyond the cases of OpTests: long lines, many parts, half precision, far means."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.testing import run_op
from fluidnb_kernels import emulator
from fluidnb_kernels.norm.launch import Channels
from tests.cuda.operands import emulated, numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

Array = np.ndarray[Any, Any]
HALF = pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])


def vectors(channels: int, dtype: Any) -> dict[str, Array]:
    return {
        "Scale": numbers(channels, seed=2, low=0.5).astype(dtype), "Bias": numbers(channels, seed=3).astype(dtype),
    }  # fmt: skip


def batch(x: Array, attrs: dict[str, Any] | None = None, channels: int | None = None) -> None:
    """batch_norm and its gradient."""
    c, dtype, attrs = channels or x.shape[1], x.dtype, attrs or {}
    given = {"X": x, **vectors(c, dtype), "Mean": numbers(c, seed=4).astype(dtype)}
    given["Variance"] = numbers(c, seed=5, low=0.5).astype(dtype)
    scope = twins("batch_norm", given, attrs, ["Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"])
    saved = {s: np.asarray(scope.find_var(f"{s}@out").value) for s in ("SavedMean", "SavedVariance")}
    g = numbers(*x.shape, seed=6).astype(x.dtype)
    outs = ["X@GRAD", "Scale@GRAD", "Bias@GRAD"]
    for wanted in (outs, outs[:1], outs[1:2]):
        given = {"X": x, "Scale": given["Scale"], "Bias": given["Bias"], "Y@GRAD": g, **saved}
        twins("batch_norm_grad", given, attrs, wanted)


def lines(type: str, x: Array, size: int, attrs: dict[str, Any], kept: tuple[str, str], plain: bool = False) -> None:
    """One of the others and its gradient."""
    given = {"X": x, **({} if plain else vectors(size, x.dtype))}
    scope = twins(type, given, attrs, ["Y", *kept])
    saved = {slot: np.asarray(scope.find_var(f"{slot}@out").value) for slot in kept}
    g = numbers(*x.shape, seed=6).astype(x.dtype)
    outs = ["X@GRAD"] if plain else ["X@GRAD", "Scale@GRAD", "Bias@GRAD"]
    twins(f"{type}_grad", {**given, **saved, "Y@GRAD": g}, attrs, outs)


MOMENTS, SAVED = ("Mean", "Variance"), ("SavedMean", "SavedVariance")


@pytest.mark.parametrize("shape", [(6, 3, 60, 17), (5000, 3), (300, 70), (2, 1, 1)])
def test_a_batch_in_several_parts(shape: tuple[int, ...]) -> None:
    batch(numbers(*shape))


def test_how_channels_are_cut() -> None:
    assert Channels(6, 3, 1020).parts == 2 and Channels(5000, 3, 1).parts == 78 and Channels(2, 70, 1).parts == 1


@HALF
def test_a_batch_in_half_precision(dtype: Any) -> None:
    batch(numbers(4, 3).astype(dtype))


@HALF
def test_a_batch_in_half_precision_with_moments_in_single(dtype: Any) -> None:
    given = {"X": (8 + numbers(4, 3, 5)).astype(dtype), **vectors(3, np.float32)}
    given |= {"Mean": np.zeros(3, np.float32), "Variance": np.ones(3, np.float32)}
    got = emulated("batch_norm", given, {}, ["Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"])
    want = run_op("batch_norm", {**given, "X": given["X"].astype(np.float32)})
    assert got["Y"].dtype == dtype
    np.testing.assert_allclose(got["Y"].astype(np.float32), want["Y"], 8e-3, 8e-3)
    for slot in ("MeanOut", "VarianceOut", "SavedMean", "SavedVariance"):
        assert got[slot].dtype == np.float32
        np.testing.assert_allclose(got[slot], want[slot], 1e-5)


@pytest.mark.parametrize("attrs", [{"use_global_stats": True}, {"data_layout": "NHWC"}], ids=["running", "last"])
def test_a_batch_otherwise(attrs: dict[str, Any]) -> None:
    batch(numbers(4, 3, 5, 6).astype(np.float32), attrs, channels=6 if "data_layout" in attrs else 3)


def test_a_momentum_of_a_variable() -> None:
    given = {"X": numbers(4, 3), **vectors(3, np.float64), "Mean": numbers(3), "Variance": numbers(3, low=0.5)}
    given["MomentumTensor"] = np.array([0.25])
    twins("batch_norm", given, {}, {"Y": "y", "MeanOut": "Mean", "VarianceOut": "Variance"})


def test_nothing_to_normalise() -> None:
    twins("layer_norm", {"X": np.zeros((0, 4))}, {}, ["Y"])
    twins("layer_norm_grad", {"X": np.zeros((0, 4)), "Y@GRAD": np.zeros((0, 4)), "Scale": np.ones(4),
                              "Mean": np.zeros(0), "Variance": np.zeros(0)}, {}, ["X@GRAD", "Scale@GRAD"])  # fmt: skip


def test_numbers_far_from_zero() -> None:
    """In float32 the squares of these numbers would leave nothing of the variance."""
    lines("layer_norm", 1000 + numbers(2, 1500), 1500, {}, MOMENTS, plain=True)
    x = (1000 + np.arange(1500) % 2).astype(np.float32).reshape(1, 1500)
    scope = twins("layer_norm", {"X": x}, {}, ["Y", "Mean", "Variance"])
    np.testing.assert_allclose(np.asarray(scope.find_var("Variance@out").value), 0.25, 1e-3)


@pytest.mark.parametrize("shape", [(3, 33), (9, 1), (2, 1500), (700, 5)])
def test_rows(shape: tuple[int, int]) -> None:
    lines("layer_norm", numbers(*shape), shape[1], {}, MOMENTS)


@HALF
def test_rows_in_half_precision(dtype: Any) -> None:
    lines("layer_norm", numbers(3, 40).astype(dtype), 40, {}, MOMENTS)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_groups(groups: int, layout: str) -> None:
    x = numbers(3, 6, 5, 7) if layout == "NCHW" else numbers(3, 5, 7, 6)
    lines("group_norm", x, 6, {"groups": groups, "data_layout": layout}, MOMENTS)


def test_long_groups() -> None:
    lines("group_norm", numbers(2, 4, 700).astype(np.float32), 4, {"groups": 2}, MOMENTS)


@pytest.mark.parametrize("shape", [(3, 4, 5, 2), (2, 3, 1100)])
def test_images(shape: tuple[int, ...]) -> None:
    lines("instance_norm", numbers(*shape), shape[1], {}, SAVED)
    lines("instance_norm", numbers(*shape).astype(np.float32), shape[1], {}, SAVED, plain=True)
