"""Images resampled on the emulator beyond the cases of OpTests: wide rows, large windows, layouts, dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb_kernels import emulator
from tests.cuda.operands import numbers, twins
from tests.tools.sampling import sample

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

DTYPES = pytest.mark.parametrize(
    "dtype", [np.float32, *sample([np.float16, ml_dtypes.bfloat16], 1)], ids=lambda dtype: np.dtype(dtype).name
)


def resized(type: str, x: np.ndarray[Any, Any], height: int, width: int, **attrs: Any) -> None:
    """A resizing and its gradient."""
    attrs |= {"out_h": height, "out_w": width}
    scope = twins(type, {"X": x}, attrs, ["Out"])
    g = numbers(*np.asarray(scope.find_var("Out@out").value).shape, seed=2).astype(x.dtype)
    twins(f"{type}_grad", {"X": x, "Out@GRAD": g}, attrs, ["X@GRAD"])


@pytest.mark.parametrize("type", ["bilinear_interp", "nearest_interp"])
@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize(
    ("shape", "height", "width"), [((1, 2, 1, 1), 9, 13), ((2, 1, 3, 2), 29, 31), ((1, 2, 11, 300), 4, 7)]
)
def test_windows_of_all_sizes(type: str, corners: bool, shape: tuple[int, ...], height: int, width: int) -> None:
    for mode in (0, 1) if type == "bilinear_interp" and not corners else (1,):
        resized(type, numbers(*shape), height, width, align_corners=corners, align_mode=mode)


@pytest.mark.parametrize("type", ["bilinear_interp", "nearest_interp"])
def test_channels_last(type: str) -> None:
    resized(type, numbers(2, 3, 5, 70), 7, 4, data_layout="NHWC")
    resized(type, numbers(1, 1, 1, 3), 9, 13, data_layout="NHWC")


@DTYPES
@pytest.mark.parametrize("type", ["bilinear_interp", "nearest_interp"])
def test_dtypes_of_resized_images(type: str, dtype: Any) -> None:
    resized(type, numbers(1, 2, 5, 4).astype(dtype), 8, 9)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "bool"])
def test_the_nearest_element_of_any_dtype(dtype: str) -> None:
    twins("nearest_interp", {"X": np.arange(30).reshape(1, 2, 3, 5).astype(dtype)}, {"out_h": 5, "out_w": 4}, ["Out"])


def test_no_images() -> None:
    resized("bilinear_interp", numbers(0, 2, 3, 4), 5, 6)


def sampled(x: np.ndarray[Any, Any], grid: np.ndarray[Any, Any], **attrs: Any) -> None:
    """An image read at points, and the gradients together and alone."""
    twins("grid_sampler", {"X": x, "Grid": grid}, attrs, ["Output"])
    g = numbers(*x.shape[:2], *grid.shape[1:3], seed=4).astype(x.dtype)
    for wanted in (["X@GRAD", "Grid@GRAD"], ["X@GRAD"], ["Grid@GRAD"]):
        twins("grid_sampler_grad", {"X": x, "Grid": grid, "Output@GRAD": g}, attrs, wanted)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_many_points_and_channels(padding: str, corners: bool, mode: str) -> None:
    grid = numbers(2, 5, 67, 2, seed=3, low=-3, high=3)
    sampled(numbers(2, 9, 4, 5), grid, padding_mode=padding, align_corners=corners, mode=mode)


@DTYPES
def test_dtypes_of_samples(dtype: Any) -> None:
    sampled(numbers(1, 3, 4, 5).astype(dtype), numbers(1, 2, 3, 2, seed=3).astype(dtype))


def test_points_in_the_middle_of_elements_and_an_image_of_one() -> None:
    lines = np.stack(np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 3)), -1)[None]
    for padding in ("zeros", "border", "reflection"):
        sampled(numbers(1, 2, 3, 5), lines, padding_mode=padding)
        sampled(numbers(1, 2, 1, 1), lines, padding_mode=padding)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("corners", [True, False])
def test_points_of_affine_maps(rank: int, corners: bool) -> None:
    theta, sizes = numbers(3, rank, rank + 1), [7, 11, 3][:rank]
    attrs = {"output_shape": [3, 1, *sizes], "align_corners": corners}
    twins("affine_grid", {"Theta": theta}, attrs, ["Output"])
    g = numbers(3, *sizes, rank, seed=5)
    twins("affine_grid_grad", {"Theta": theta, "Output@GRAD": g}, attrs, ["Theta@GRAD"])


@DTYPES
def test_dtypes_of_affine_maps(dtype: Any) -> None:
    twins("affine_grid", {"Theta": numbers(2, 2, 3).astype(dtype)}, {"output_shape": [2, 1, 3, 4]}, ["Output"])
