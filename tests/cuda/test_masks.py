"""Masks of regions on the emulator: polygons of any form, regions of any size, what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.emulator.raw import EmulatorError
from tests.cuda.operands import emulated, numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

OUTPUTS = ["MaskRois", "RoiHasMaskInt32", "MaskInt32"]


def image(seed: int, dtype: Any = np.float32) -> dict[str, Any]:
    """Three images: with objects of some polygons each, with regions of no class, without regions."""
    draw = np.random.default_rng(seed)
    corners = [int(n) for n in draw.integers(3, 7, 7)]
    ends = np.cumsum([0, *corners])
    segments = numbers(ends[-1], 2, seed=seed, low=-9, high=40).astype(dtype)
    rois = numbers(9, 4, seed=seed + 1, low=-20, high=30).astype(dtype)
    rois[:, 2:] = rois[:, :2] + np.abs(rois[:, 2:]) * 2
    labels = np.array([2, 0, 1, 2, -1, 1, -1, 0, 0], np.int32)
    return {
        "ImInfo": np.array([[40, 40, 2], [20, 20, 0.7], [9, 9, 1]], dtype),
        "GtClasses": LoDTensor(np.array([[1], [2], [0], [1], [2]], np.int32), ((0, 4, 5, 5),)),
        "IsCrowd": LoDTensor(np.array([[0], [0], [0], [1], [0]], np.int32), ((0, 4, 5, 5),)),
        "GtSegms": LoDTensor(segments, ((0, 4, 5, 5), (0, 2, 3, 4, 5, 7), tuple(ends.tolist()))),
        "Rois": LoDTensor(rois, ((0, 6, 9, 9),)),
        "LabelsInt32": LoDTensor(labels.reshape(-1, 1), ((0, 6, 9, 9),)),
    }


@pytest.mark.parametrize("seed", range(6))
def test_polygons_of_any_form(seed: int) -> None:
    scope = twins("generate_mask_labels", image(seed), {"num_classes": 3, "resolution": 14}, OUTPUTS)
    found = np.asarray(scope.find_var("MaskInt32@out").value)
    assert found.shape == (5, 3 * 14 * 14) and {-1, 0, 1} == set(np.unique(found).tolist())


def test_other_resolutions_dtypes_and_outputs() -> None:
    twins("generate_mask_labels", image(7, np.float64), {"num_classes": 3, "resolution": 5}, OUTPUTS)
    twins("generate_mask_labels", image(8), {"num_classes": 4, "resolution": 1}, OUTPUTS)


def box(left: float, top: float, right: float, bottom: float) -> list[list[float]]:
    """The corners of a box; the last one is not on its upper side."""
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def test_the_first_region_of_no_class_learns_and_objects_are_measured_in_their_own_image() -> None:
    """Of the second image's objects the last but one is the region; each image has another scale."""
    upright = [[0, 10], [10, 10], [5, 0]]
    corners = np.array([*box(0, 0, 4, 4), *box(0, 4, 9, 10), *upright, *box(0, 0, 10, 6)], np.float32)
    ends = ((0, 1, 4, 4), (0, 1, 2, 3, 4), (0, 4, 8, 11, 15))
    given = {
        "ImInfo": np.array([[40, 30, 1], [20, 30, 2], [7, 9, 1]], np.float32),
        "GtClasses": LoDTensor(np.array([[1], [1], [1], [2]], np.int32), ends[:1]),
        "IsCrowd": LoDTensor(np.array([[0], [1], [0], [0]], np.int32), ends[:1]),
        "GtSegms": LoDTensor(corners, ends),
        "Rois": LoDTensor(np.array([[1, 1, 5, 5], [2, 2, 6, 6], [0, 0, 20, 20]], np.float32), ((0, 2, 3, 3),)),
        "LabelsInt32": LoDTensor(np.array([[0], [0], [1]], np.int32), ((0, 2, 3, 3),)),
    }
    scope = twins("generate_mask_labels", given, {"num_classes": 2, "resolution": 6}, OUTPUTS)
    assert np.asarray(scope.find_var("RoiHasMaskInt32@out").value).ravel().tolist() == [0, 0]
    triangle = np.asarray(scope.find_var("MaskInt32@out").value)[1, 36:].reshape(6, 6)
    assert triangle.sum(1).tolist() == sorted(triangle.sum(1).tolist()) and triangle[0].sum() < triangle[5].sum()


def test_no_regions() -> None:
    given = image(9)
    for slot in ("Rois", "LabelsInt32"):
        given[slot] = LoDTensor(given[slot].array[:0], ((0, 0, 0, 0),))
    twins("generate_mask_labels", given, {"num_classes": 3, "resolution": 4}, OUTPUTS)


@pytest.mark.parametrize(("slot", "value"), [("LabelsInt32", 3), ("IsCrowd", 1)])
def test_what_does_not_fit_stops_the_kernel(slot: str, value: int) -> None:
    given = image(9)
    given[slot].array[...] = value
    with pytest.raises(EmulatorError, match="trap"):
        emulated("generate_mask_labels", given, {"num_classes": 3, "resolution": 4}, OUTPUTS)
