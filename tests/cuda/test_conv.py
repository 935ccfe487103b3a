"""Convolutions on the emulator beyond the cases of their OpTests: half precision, groups, batches in parts, many
blocks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb_kernels import emulator
from fluidnb_kernels.conv import device_products
from fluidnb_kernels.cuda import grid
from fluidnb_kernels.sliding import slide
from tests.cuda.operands import numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

Array = np.ndarray[Any, Any]
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
name_of: Any = lambda d: np.dtype(d).name  # noqa: E731


def both_ways(type: str, x: Array, w: Array, **attrs: Any) -> None:
    """An operator and its gradients."""
    given = {"Input": x, "Filter": w}
    out = twins(type, given, attrs, ["Output"]).find_var("Output@out").value.array
    slopes = {**given, "Output@GRAD": numbers(*out.shape, seed=3).astype(x.dtype)}
    for wanted in (["Input@GRAD", "Filter@GRAD"], ["Filter@GRAD"], ["Input@GRAD"]):
        twins(type + "_grad", slopes, attrs, wanted)


def pair(x: tuple[int, ...], w: tuple[int, ...], dtype: Any = np.float64) -> tuple[Array, Array]:
    return numbers(*x, seed=1).astype(dtype), numbers(*w, seed=2).astype(dtype)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_dtype(dtype: Any, layout: str) -> None:
    shape, how = ((3, 4, 5, 6), {"paddings": [1, 0], "strides": [2, 1], "data_format": layout})
    shape = shape if layout == "NCHW" else (3, 5, 6, 4)
    both_ways("conv2d", *pair(shape, (6, 2, 3, 2), dtype), groups=2, **how)
    both_ways("conv2d_transpose", *pair(shape, (4, 3, 3, 2), dtype), groups=2, **how)
    both_ways("depthwise_conv2d", *pair(shape, (8, 1, 3, 2), dtype), groups=4, **how)


@pytest.mark.parametrize("dtype", [np.float64, np.float16], ids=name_of)
@pytest.mark.parametrize("images", [1, 2])
def test_columns_of_a_few_images_at_a_time(images: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = 2 * 9 * 16 * np.dtype(dtype).itemsize
    monkeypatch.setattr(device_products, "COLUMNS", images * one)
    x, w = pair((3, 2, 4, 4), (3, 2, 3, 3), dtype)
    assert len(device_products.parts_of(x, slide([4, 4], [3, 3], [1, 1], [1, 1]))) == -(-3 // images)
    both_ways("conv2d", x, w, paddings=[1, 1])
    both_ways("conv2d_transpose", *pair((3, 3, 4, 4), (3, 2, 3, 3), dtype), paddings=[1, 1])


@pytest.mark.parametrize("shape", [(2, 4, 5, 3), (5, 4, 3, 3), (1, 4, 2, 2)])
@pytest.mark.parametrize("groups", [1, 2])
def test_windows_of_one_element_are_the_image(groups: int, shape: tuple[int, ...]) -> None:
    both_ways("conv2d", *pair(shape, (6, 4 // groups, 1, 1)), groups=groups)
    both_ways("conv2d", *pair(shape, (6, 4 // groups, 1, 1)), groups=groups, strides=[2, 2])
    both_ways("conv2d", *pair(shape, (6, 4 // groups, 1, 1)), groups=groups, paddings=[0, 0, 1, 1])
    both_ways("conv2d_transpose", *pair(shape, (4, 3, 1, 1)), groups=groups)


def test_more_than_a_block_and_threads_that_go_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "BLOCKS", 1)
    both_ways("conv2d", *pair((2, 3, 17, 15), (2, 3, 3, 3)), dilations=[2, 3], paddings=[2, 3])
    both_ways("depthwise_conv2d", *pair((2, 3, 17, 15), (3, 1, 3, 3)), groups=3, dilations=[2, 3], strides=[1, 2])


def test_volumes() -> None:
    how = {"strides": [1, 2, 1], "paddings": [1, 0, 1], "dilations": [2, 1, 1]}
    both_ways("conv3d", *pair((2, 4, 4, 5, 3), (2, 2, 2, 3, 2)), groups=2, **how)
    both_ways("conv3d", *pair((2, 2, 4, 5, 3), (4, 1, 2, 3, 2)), groups=2, **how)
    both_ways("conv3d_transpose", *pair((2, 4, 3, 2, 3), (4, 3, 2, 3, 2)), groups=2, **how)
    both_ways("conv3d_transpose", *pair((2, 4, 3, 2, 3), (4, 1, 2, 3, 2)), groups=4, data_format="NCDHW", **how)


def test_no_images() -> None:
    both_ways("conv2d", *pair((0, 4, 3, 3), (2, 2, 3, 3)), groups=2)
    both_ways("conv2d", *pair((0, 4, 3, 3), (4, 1, 3, 3)), groups=4)
    both_ways("conv2d_transpose", *pair((0, 4, 3, 3), (4, 2, 3, 3)), groups=2)
