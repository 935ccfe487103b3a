"""Operators over proposed regions on the emulator beyond the cases of OpTests."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import EMPTY
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from tests.cuda.operands import numbers, twins
from tests.cuda.test_detection import boxes, regions

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

Array = np.ndarray[Any, Any]
HALVES = pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=["single", "half", "brain"])
PARTS = {"pooled_height": 3, "pooled_width": 5, "output_channels": 2}
SIZES = {"transformed_height": 5, "transformed_width": 7}


def quadrilaterals(count: int, size: float, seed: int = 3) -> Array:
    """Corners of quadrilaterals, from the top left one clockwise."""
    first, wide = numbers(count, 1, 2, seed=seed, low=-2, high=size), numbers(count, 1, 2, seed=seed + 1, low=2, high=5)
    square = first + wide * np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    return (square + numbers(count, 4, 2, seed=seed + 2, low=-0.4, high=0.4)).reshape(count, 8)


def test_parts_with_channels_of_their_own() -> None:
    x, rois = numbers(3, 30, 6, 11), boxes(7, -8, 19)
    regions("psroi_pool", x, {"ROIs": LoDTensor(rois, ((0, 2, 2, 7),))}, **PARTS, spatial_scale=0.5)
    regions("psroi_pool", x, {"ROIs": rois, "RoisNum": np.array([0, 3, 4], np.int64)}, **PARTS)
    regions("psroi_pool", x, {"ROIs": rois[:0], "RoisNum": np.zeros(3, np.int32)}, **PARTS)


@HALVES
def test_dtypes_of_parts(dtype: Any) -> None:
    rois = boxes(3, 0, 6).astype(dtype)
    regions("psroi_pool", numbers(1, 30, 6, 7).astype(dtype), {"ROIs": LoDTensor(rois, ((0, 3),))}, **PARTS)


def test_quadrilaterals() -> None:
    x, rois = numbers(2, 3, 8, 9), quadrilaterals(6, 8)
    rois[4] = [1, 1, 4, 1, 4, 1, 1, 1]  # without a height
    regions("roi_perspective_transform", x, {"ROIs": LoDTensor(rois, ((0, 2, 6),))}, **SIZES, spatial_scale=0.5)
    regions("roi_perspective_transform", x, {"ROIs": LoDTensor(rois, ((0, 6, 6),))}, **SIZES)
    regions("roi_perspective_transform", x, {"ROIs": LoDTensor(rois[:0], ((0, 0, 0),))}, **SIZES)


@HALVES
def test_dtypes_of_quadrilaterals(dtype: Any) -> None:
    x, rois = numbers(1, 2, 8, 9).astype(dtype), quadrilaterals(3, 5).astype(dtype)
    twins("roi_perspective_transform", {"X": x, "ROIs": LoDTensor(rois, ((0, 3),))}, SIZES, ["Out"])


@HALVES
def test_boxes_of_classes(dtype: Any) -> None:
    priors = np.concatenate([numbers(7, 2), numbers(7, 2, seed=2, low=2, high=9)], 1).astype(dtype)
    scores = numbers(7, 4, seed=5, low=-2).astype(dtype)
    scores[3] = -1
    given = {"PriorBox": priors, "PriorBoxVar": np.array([0.1, 0.1, 0.2, 0.2]).astype(dtype),
             "TargetBox": numbers(7, 16, seed=4).astype(dtype), "BoxScore": scores}  # fmt: skip
    twins("box_decoder_and_assign", given, {"box_clip": 0.1}, ["DecodeBox", "OutputAssignBox"])
    twins("box_decoder_and_assign", given, {}, {"DecodeBox": EMPTY, "OutputAssignBox": "best"})
