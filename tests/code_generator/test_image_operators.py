"""Operators on images and volumes in C: windows, borders, grids, norms, sizes, all beside the executor."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.code_generator.batch import Batch
from tests.code_generator.test_operators import real


def windows(b: Batch) -> None:
    """unfold and pixel_shuffle: paddings of each side, strides, dilations, both layouts."""
    plain = {"strides": [1, 1], "paddings": [0, 0, 0, 0], "dilations": [1, 1]}
    rows: list[dict[str, Any]] = [
        {"kernel_sizes": [3, 3], **plain}, {"kernel_sizes": [2, 3], **plain, "strides": [2, 1]},
        {"kernel_sizes": [3, 2], "strides": [2, 3], "paddings": [1, 2, 0, 3], "dilations": [2, 1]},
        {"kernel_sizes": [1, 1], **plain, "paddings": [2, 0, 1, 4], "strides": [3, 2]},
    ]  # fmt: skip
    for attrs in rows:
        b.add("unfold", {"X": real(2, 3, 7, 5)}, attrs, ["Y"], grad=True)
    b.add("unfold", {"X": real(1, 2, 4, 4).astype(np.float64)}, rows[0], ["Y"], grad=True)
    for factor, layout, shape in ((2, "NCHW", (2, 8, 3, 5)), (3, "NHWC", (2, 2, 3, 18)), (1, "NCHW", (1, 3, 2, 2))):
        b.add("pixel_shuffle", {"X": real(*shape)}, {"upscale_factor": factor, "data_format": layout}, grad=True)


def volumes(b: Batch) -> None:
    """pool3d, and the places of the largest elements of windows."""
    rows: list[dict[str, Any]] = [
        {"ksize": [2, 2, 2], "strides": [2, 2, 2]}, {"ksize": [3, 1, 2], "strides": [1, 2, 1], "paddings": [1, 0, 1]},
        {"ksize": [3, 3, 3], "strides": [2, 2, 2], "ceil_mode": True, "exclusive": False, "paddings": [1, 1, 1]},
        {"ksize": [2, 3, 2], "adaptive": True}, {"ksize": [1, 1, 1], "global_pooling": True},
        {"ksize": [2, 2, 2], "strides": [2, 1, 2], "data_format": "NDHWC"},
        {"ksize": [3, 2, 2], "strides": [2, 2, 2], "padding_algorithm": "SAME"},
    ]
    for attrs in rows:
        for kind in ("max", "avg"):
            b.add("pool3d", {"X": real(2, 3, 5, 4, 7)}, {"pooling_type": kind, **attrs}, grad=True)
    flat: list[dict[str, Any]] = [
        {"ksize": [2, 3], "strides": [2, 2], "paddings": [1, 1]}, {"ksize": [3, 2], "adaptive": True},
        {"ksize": [2, 2], "global_pooling": True}, {"ksize": [3, 3], "strides": [1, 2], "paddings": [2, 0]},
    ]
    for attrs in flat:
        b.add("max_pool2d_with_index", {"X": real(2, 3, 7, 5)}, attrs, ["Out", "Mask"])
    b.add("max_pool2d_with_index", {"X": np.zeros((1, 1, 4, 4), np.float32)}, flat[0], ["Out", "Mask"])
    b.add("max_pool2d_with_index", {"X": np.full((1, 1, 4, 4), np.nan, np.float32)}, flat[0], ["Out", "Mask"])
    b.add("max_pool3d_with_index", {"X": real(2, 2, 5, 4, 3)}, {"ksize": [2, 2, 2], "strides": [2, 2, 1]}, ["Mask"])


def borders(b: Batch) -> None:
    """pad3d: all modes, both layouts."""
    for mode in ("constant", "reflect", "replicate", "circular"):
        attrs: dict[str, Any] = {"mode": mode, "value": 2.5, "paddings": [1, 2, 0, 1, 2, 1]}
        b.add("pad3d", {"X": real(2, 3, 4, 3, 5)}, attrs, grad=True)
        b.add("pad3d", {"X": real(2, 4, 3, 5, 2)}, {**attrs, "data_format": "NDHWC"}, grad=True)
    b.add("pad3d", {"X": real(1, 2, 1, 3, 3)}, {"paddings": [0] * 6}, grad=True)


def grids(b: Batch) -> None:
    """affine_grid and grid_sampler: every mode and padding, points outside, sizes of 1."""
    for corners in (True, False):
        for shape, theta in (((2, 3, 4, 5), (2, 2, 3)), ((1, 1, 1, 3), (1, 2, 3)), ((2, 1, 2, 1, 3), (2, 3, 4))):
            b.add("affine_grid", {"Theta": real(*theta)}, {"output_shape": list(shape), "align_corners": corners},
                  ["Output"])  # fmt: skip
        for mode in ("bilinear", "nearest"):
            for padding in ("zeros", "border", "reflection"):
                attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
                for size in ((5, 4), (1, 3)):
                    grid = real(2, 3, 7, 2, low=-3, high=3)
                    b.add("grid_sampler", {"X": real(2, 3, *size), "Grid": grid}, attrs, ["Output"])
    exact = np.array([-1, 1, 0, 0, 1, -1, 0.5, -0.5], np.float32).reshape(1, 2, 2, 2)
    b.add("grid_sampler", {"X": real(1, 2, 3, 5), "Grid": exact}, {}, ["Output"])
    far = np.array([-np.inf, 0, np.inf, 1e30], np.float32).reshape(1, 1, 2, 2)
    b.add("grid_sampler", {"X": real(1, 2, 3, 5), "Grid": far}, {"mode": "nearest"}, ["Output"])


def norms(b: Batch) -> None:
    """p_norm: all kinds of p, axes from either end, all of X as one vector, an element of 0."""
    for p in (0.0, 1.0, 2.0, 3.0, 0.5, np.inf, -np.inf):
        x = real(3, 4, 5, low=0.1) * np.where(real(3, 4, 5) < 0, -1, 1).astype(np.float32)
        for attrs in ({"axis": -1}, {"axis": 1, "keepdim": True}, {"axis": -3}, {"asvector": True}):
            b.add("p_norm", {"X": x}, {"porder": float(p), **attrs}, grad=True)
    x = real(2, 3)
    x[0, 1] = 0
    for p in (0.0, 1.0, 2.0):
        b.add("p_norm", {"X": x}, {"porder": p}, grad=True)
        b.add("p_norm", {"X": x.astype(np.float64)}, {"porder": p}, grad=True)
    b.add("p_norm", {"X": np.array([[1, np.nan, 3]], np.float32)}, {"porder": np.inf})


def sizes(b: Batch) -> None:
    """bicubic_interp_v2: larger and smaller, both layouts, a scale, corners."""
    rows: list[dict[str, Any]] = [
        {"out_h": 7, "out_w": 3}, {"out_h": 5, "out_w": 5, "align_corners": False}, {"out_h": 1, "out_w": 9},
        {"scale": [1.7, 0.6], "align_corners": False}, {"out_h": 3, "out_w": 8, "data_layout": "NHWC"},
    ]  # fmt: skip
    for attrs in rows:
        b.add("bicubic_interp_v2", {"X": real(2, 3, 5, 4)}, attrs)
    b.add("bicubic_interp_v2", {"X": real(1, 1, 1, 2).astype(np.float64)}, rows[1])


@pytest.mark.parametrize("group", [windows, volumes, borders, grids, norms, sizes], ids=lambda group: group.__name__)
def test_operators_on_images_in_c(group: Callable[[Batch], None], tmp_path: Path) -> None:
    batch = Batch()
    group(batch)
    batch.check(tmp_path)
