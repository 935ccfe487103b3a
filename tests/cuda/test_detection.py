"""Operators of detection on the emulator beyond the cases of OpTests: many regions, dtypes, what is outside."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import EMPTY
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.emulator.raw import EmulatorError
from tests.cuda.operands import emulated, numbers, twins
from tests.tools.sampling import sample

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

Array = np.ndarray[Any, Any]
DTYPES = pytest.mark.parametrize(
    "dtype", [np.float32, *sample([np.float16, ml_dtypes.bfloat16], 1)], ids=lambda dtype: np.dtype(dtype).name
)


def boxes(count: int, low: float, high: float, seed: int = 7) -> Array:
    """Boxes of any size within a range of coordinates; some have their sides the wrong way round."""
    return numbers(count, 4, seed=seed, low=low, high=high)


def regions(type: str, x: Array, given: dict[str, Any], **attrs: Any) -> None:
    """An operator over regions, each of its results alone, and its gradient."""
    kept = ["Argmax"] if type == "roi_pool" else []
    scope = twins(type, {"X": x, **given}, attrs, ["Out", *kept])
    saved = {slot: np.asarray(scope.find_var(f"{slot}@out").value) for slot in kept}
    g = numbers(*np.asarray(scope.find_var("Out@out").value).shape, seed=4).astype(x.dtype)
    twins(f"{type}_grad", {"X": x, **given, **saved, "Out@GRAD": g}, attrs, ["X@GRAD"])


PARTS = {"pooled_height": 3, "pooled_width": 5}


@pytest.mark.parametrize("type", ["roi_align", "roi_pool"])
def test_many_regions_by_sequence_and_by_count(type: str) -> None:
    x, rois = numbers(3, 9, 6, 11), boxes(7, -8, 19)
    regions(type, x, {"ROIs": LoDTensor(rois, ((0, 2, 2, 7),))}, **PARTS, spatial_scale=0.5)
    regions(type, x, {"ROIs": rois, "RoisNum": np.array([0, 3, 4], np.int64)}, **PARTS)
    regions(type, x, {"ROIs": rois[:0], "RoisNum": np.zeros(3, np.int32)}, **PARTS)


@pytest.mark.parametrize("ratio", [-1, 1, 3])
@pytest.mark.parametrize("aligned", [True, False])
def test_points_of_regions(ratio: int, aligned: bool) -> None:
    given = {"ROIs": np.concatenate([boxes(4, -9, 15), [[0, 0, 6, 10], [2, 2, 2, 2], [-90, -90, 90, 90]]])}
    given["RoisNum"] = np.array([7], np.int32)
    regions("roi_align", numbers(1, 2, 6, 11), given, **PARTS, sampling_ratio=ratio, aligned=aligned)


@DTYPES
@pytest.mark.parametrize("type", ["roi_align", "roi_pool"])
def test_dtypes_of_regions(type: str, dtype: Any) -> None:
    rois = boxes(3, 0, 6).astype(dtype)
    regions(type, numbers(1, 2, 6, 7).astype(dtype), {"ROIs": rois, "RoisNum": np.array([3], np.int32)}, **PARTS)


def test_the_first_of_equal_pixels_and_no_number() -> None:
    x = np.zeros((1, 1, 4, 4))
    x[0, 0, 1, 2] = x[0, 0, 3, 3] = np.nan
    given = {"ROIs": np.array([[0.0, 0, 3, 3]]), "RoisNum": np.array([1], np.int32)}
    twins("roi_pool", {"X": x, **given}, {"pooled_height": 2, "pooled_width": 1}, ["Out", "Argmax"])
    for wanted in ({"Out": EMPTY, "Argmax": "a"}, {"Out": "o", "Argmax": EMPTY}):
        twins("roi_pool", {"X": x, **given}, {"pooled_height": 2, "pooled_width": 1}, wanted)


def test_a_region_that_is_none() -> None:
    given = {"X": numbers(1, 1, 3, 3), "ROIs": np.array([[0.0, 0, np.inf, 2]]), "RoisNum": np.array([1], np.int32)}
    assert np.isnan(emulated("roi_align", given, {}, ["Out"])["Out"]).all()


def test_more_regions_than_are_counted() -> None:
    given = {"X": numbers(1, 1, 3, 3), "ROIs": boxes(2, 0, 3), "RoisNum": np.array([1], np.int32)}
    with pytest.raises(EmulatorError, match="trap"):
        emulated("roi_align", given, {}, ["Out"])


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("spread", ["of each", "of all", "none"])
def test_codes_of_many_boxes(normalized: bool, spread: str) -> None:
    attrs = {"box_normalized": normalized, "variance": [0.1, 0.2, 0.3, 0.4] if spread == "of all" else []}
    given = {"PriorBoxVar": numbers(90, 4, low=0.1)} if spread == "of each" else {}
    priors = np.concatenate([numbers(90, 2), numbers(90, 2, seed=2, low=2, high=3)], 1)
    targets = np.concatenate([numbers(5, 2, seed=3), numbers(5, 2, seed=4, low=2, high=3)], 1)
    targets[2] = targets[2, [2, 3, 0, 1]]  # its sides the wrong way round
    twins("box_coder", {"PriorBox": priors, "TargetBox": targets, **given}, attrs, ["OutputBox"])
    attrs["code_type"] = "decode_center_size"
    for axis, shape in enumerate([(5, 90, 4), (90, 5, 4)]):
        codes = numbers(*shape, seed=5)
        twins("box_coder", {"PriorBox": priors, "TargetBox": codes, **given}, {**attrs, "axis": axis}, ["OutputBox"])


@DTYPES
def test_dtypes_of_boxes(dtype: Any) -> None:
    x, y = (np.concatenate([numbers(n, 2), numbers(n, 2, seed=2, low=2, high=3)], 1).astype(dtype) for n in (3, 4))
    twins("box_coder", {"PriorBox": x, "TargetBox": y}, {}, ["OutputBox"])
    twins("box_coder", {"PriorBox": x, "TargetBox": numbers(2, 3, 4).astype(dtype)},
          {"code_type": "decode_center_size"}, ["OutputBox"])  # fmt: skip
    twins("iou_similarity", {"X": x, "Y": y}, {}, ["Out"])
    info = np.array([[2.0, 3.0, 1.0]]).astype(dtype)
    twins("box_clip", {"Input": LoDTensor(x * 3, ((0, 3),)), "ImInfo": info}, {}, ["Output"])
    twins("polygon_box_transform", {"Input": numbers(1, 2, 3, 4).astype(dtype)}, {}, ["Output"])
    for type, slots, given in GENERATORS:
        twins(
            type, {s: np.zeros(shape, dtype) for s, shape in MAPS.items() if s in given["from"]}, given["attrs"], slots
        )


@pytest.mark.parametrize("normalized", [True, False])
def test_overlaps_of_many_boxes(normalized: bool) -> None:
    x, y = boxes(70, -2, 9), boxes(300, -2, 9, seed=8)
    x[3], y[5] = np.nan, [1, 1, 1, 1]
    twins("iou_similarity", {"X": x, "Y": y}, {"box_normalized": normalized}, ["Out"])
    twins("iou_similarity", {"X": x[:0], "Y": y}, {}, ["Out"])


def test_boxes_of_several_images_and_dimensions() -> None:
    x, info = numbers(6, 3, 4, low=-4, high=30), np.array([[20.0, 11, 2], [7, 9, 0.5], [3, 4, 1]])
    x[2, 1, 3] = np.nan
    twins("box_clip", {"Input": LoDTensor(x, ((0, 2, 2, 6),)), "ImInfo": info}, {}, ["Output"])
    twins("box_clip", {"Input": LoDTensor(x[:0], ((0, 0, 0, 0),)), "ImInfo": info}, {}, ["Output"])
    twins("polygon_box_transform", {"Input": numbers(3, 4, 5, 70)}, {}, ["Output"])


MAPS = {"Input": (1, 2, 5, 70), "Image": (1, 3, 77, 301)}
PLACED: dict[str, Any] = {"variances": [0.1, 0.2, 0.3, 0.4]}
SQUARES = {**PLACED, "min_sizes": [4.0, 60.0], "max_sizes": [9.0, 90.0], "aspect_ratios": [2.0, 3.0]}
DENSE = {**PLACED, "fixed_sizes": [6.0, 40.0], "fixed_ratios": [1.0, 2.0], "densities": [3, 1]}
ANCHORS = {**PLACED, "anchor_sizes": [32.0, 64.0], "aspect_ratios": [0.5, 1.0], "stride": [16.0, 8.0]}
#: operator, outputs, what it is given
GENERATORS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("prior_box", ["Boxes", "Variances"], {"from": ["Input", "Image"], "attrs": SQUARES}),
    ("density_prior_box", ["Boxes", "Variances"], {"from": ["Input", "Image"], "attrs": DENSE}),
    ("anchor_generator", ["Anchors", "Variances"], {"from": ["Input"], "attrs": ANCHORS}),
]


@pytest.mark.parametrize(("type", "slots", "given"), GENERATORS, ids=[row[0] for row in GENERATORS])
@pytest.mark.parametrize("more", [{}, {"clip": False, "step_w": 3.0, "step_h": 5.0, "offset": 0.25}])
def test_boxes_of_every_place(type: str, slots: list[str], given: dict[str, Any], more: dict[str, Any]) -> None:
    known = {"offset"} if type == "anchor_generator" else set(more)
    attrs = given["attrs"] | {name: value for name, value in more.items() if name in known}
    twins(type, {slot: np.zeros(MAPS[slot]) for slot in given["from"]}, attrs, slots)


@pytest.mark.parametrize("classes", [1, 3, 40])
@pytest.mark.parametrize("aware", [None, 0.0, 0.4])
def test_boxes_and_scores_of_a_map(classes: int, aware: float | None) -> None:
    attrs: dict[str, Any] = {"anchors": [10, 13, 16, 30], "class_num": classes, "conf_thresh": 0.5, "scale_x_y": 1.2}
    attrs |= {} if aware is None else {"iou_aware": True, "iou_aware_factor": aware}
    x = numbers(2, 2 * (5 + classes + (aware is not None)), 6, 7, low=-2, high=2)
    given = {"X": x, "ImgSize": np.array([[90, 120], [64, 50]], np.int64)}
    for inside in (True, False):
        twins("yolo_box", given, {**attrs, "clip_bbox": inside}, ["Boxes", "Scores"])


def test_a_box_too_large_for_numbers_that_nobody_wants() -> None:
    x = np.zeros((1, 6, 1, 2))
    x[0, 2], x[0, 4] = 1e4, [-9, 9]
    scope = twins(
        "yolo_box", {"X": x, "ImgSize": np.array([[8, 8]], np.int32)}, {"anchors": [4, 4]}, ["Boxes", "Scores"]
    )
    assert not np.asarray(scope.find_var("Boxes@out").value)[0, 0].any()


@pytest.mark.parametrize(("dtype", "width"), [(np.float64, 70), (np.int32, 1)])
def test_targets_of_many_priors(dtype: Any, width: int) -> None:
    x = LoDTensor(numbers(9, 6, width, low=-9, high=9).astype(dtype), ((0, 4, 4, 9),))
    match = numbers(3, 300, low=-3, high=4).astype(np.int64)
    match[1] = -1
    chosen = LoDTensor(np.array([[5], [0], [299], [7]], np.int32), ((0, 1, 3, 4),))
    given = {"X": x, "MatchIndices": match}
    twins("target_assign", given, {"mismatch_value": 3}, ["Out", "OutWeight"])
    for wanted in (["Out", "OutWeight"], {"Out": EMPTY, "OutWeight": "w"}, {"Out": "o", "OutWeight": EMPTY}):
        twins("target_assign", {**given, "NegIndices": chosen}, {"mismatch_value": -2}, wanted)


def test_targets_from_another_image_and_negatives_that_are_no_priors() -> None:
    x = LoDTensor(numbers(3, 1, 1), ((0, 1, 3),))
    match, chosen = np.array([[0], [2]], np.int32), LoDTensor(np.array([[1]], np.int32), ((0, 0, 1),))
    wanted = ["Out", "OutWeight"]
    with pytest.raises(EmulatorError, match="trap"):
        emulated("target_assign", {"X": x, "MatchIndices": match}, {}, wanted)
    with pytest.raises(EmulatorError, match="trap"):
        emulated("target_assign", {"X": x, "MatchIndices": match - 1, "NegIndices": chosen}, {}, wanted)


TASK: dict[str, Any] = {"anchors": [10, 13, 16, 30, 33, 23, 33, 23], "anchor_mask": [2, 0, 3], "class_num": 6}


def learned(dtype: Any, size: int = 5, objects: int = 7, **attrs: Any) -> dict[str, Array]:
    """A map and its objects, two of them at the same place with the same anchor, one that is none."""
    gt = np.concatenate([numbers(2, objects, 2, low=0, high=1), numbers(2, objects, 2, seed=3, low=0.02, high=0.4)], -1)
    gt[0, 3], gt[0, 4, :2], gt[1, 2, 2:] = [0.5, 0.5, 0.06, 0.08], [0.52, 0.53], 0
    gt[0, 4, 2:] = gt[0, 3, 2:]
    x = numbers(2, 3 * 11, size, size, seed=5).astype(dtype)
    given = {"X": x, "GTBox": gt.astype(dtype), "GTLabel": np.arange(2 * objects, dtype=np.int32).reshape(2, -1) % 6}
    given["GTScore"] = numbers(2, objects, seed=6, low=0.2).astype(dtype)
    attrs = TASK | attrs
    masks = ["ObjectnessMask", "GTMatchMask"]
    scope = twins("yolov3_loss", given, attrs, ["Loss", *masks])
    saved = {slot: np.asarray(scope.find_var(f"{slot}@out").value) for slot in masks}
    g = numbers(2, seed=8).astype(dtype)
    outs = ["X@GRAD", "GTBox@GRAD", "GTScore@GRAD"]
    for wanted in (outs, outs[:1]):
        twins("yolov3_loss_grad", {**given, **saved, "Loss@GRAD": g}, attrs, wanted)
    return given


@pytest.mark.parametrize("smooth", [True, False])
def test_what_a_map_learns(smooth: bool) -> None:
    given = learned(np.float64, use_label_smooth=smooth, ignore_thresh=0.3, scale_x_y=1.1)
    del given["GTScore"]
    twins("yolov3_loss", given, TASK, ["Loss"])
    learned(np.float64, size=18, objects=40)


@DTYPES
def test_dtypes_of_maps(dtype: Any) -> None:
    learned(dtype)
    x = numbers(1, 16, 2, 3, low=-2, high=2).astype(dtype)
    given = {"X": x, "ImgSize": np.array([[90, 120]], np.int32)}
    twins("yolo_box", given, {"anchors": [10, 13, 16, 30], "class_num": 3}, ["Boxes", "Scores"])


@pytest.mark.parametrize("what", ["GTBox", "GTLabel"])
def test_an_object_outside_and_a_label_that_is_none(what: str) -> None:
    given = {"X": numbers(2, 12, 3, 3), "GTBox": np.full((2, 1, 4), 0.4), "GTLabel": np.zeros((2, 1), np.int32)}
    given[what][1] = 1
    attrs = {"anchors": [9, 9], "anchor_mask": [0], "class_num": 1}
    given["X"] = given["X"][:, :6]
    loss = emulated("yolov3_loss", given, attrs, ["Loss"])["Loss"]
    assert np.isfinite(loss[0]) and np.isnan(loss[1])


def test_no_objects() -> None:
    given = {"X": numbers(2, 6, 3, 3), "GTBox": np.zeros((2, 0, 4)), "GTLabel": np.zeros((2, 0), np.int32)}
    twins("yolov3_loss", given, {"anchors": [9, 9], "anchor_mask": [0]}, ["Loss", "ObjectnessMask", "GTMatchMask"])
