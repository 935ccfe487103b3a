"""Grids for the live sweep: networks that propose regions and classify them, and models of clicks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.paddle.grid import Array, Case, values


def _boxes(count: int, size: float, salt: int = 0) -> Array:
    first = values((count, 2), "float32", 0, size, salt)
    return np.concatenate([first, first + values((count, 2), "float32", 2, size, salt + 1)], 1)


def _anchors(rows: int, columns: int) -> Array:
    return np.array([[[[x, y, x + w, y + h] for w, h in ((7, 7), (15, 9), (4, 12))]
                      for x in range(0, 8 * columns, 8)] for y in range(0, 8 * rows, 8)], "float32")  # fmt: skip


_INFO = np.array([[24, 32, 1], [20, 30, 1.5]], "float32")


def _proposed() -> Iterator[Case]:
    anchors = _anchors(3, 4)
    for first, most, near, size, eta in product((6, 50), (3, 100), (0.3, 0.7), (1.0, 6.0), (1.0, 0.7)):
        given = {
            "Scores": values((2, 3, 3, 4), "float32", 0, 1), "BboxDeltas": values((2, 12, 3, 4), "float32", -0.6, 0.6),
            "ImInfo": _INFO, "Anchors": anchors, "Variances": values(anchors.shape, "float32", 0.4, 1.0),
        }  # fmt: skip
        attrs = {"pre_nms_topN": first, "post_nms_topN": most, "nms_thresh": near, "min_size": size, "eta": eta}
        yield Case("generate_proposals", given, ("RpnRois", "RpnRoiProbs"), attrs)


def _objects() -> dict[str, Any]:
    images, crowd = [[2, 3]], np.array([[0], [0], [0], [1], [0]], "int32")
    return {"GtBoxes": (_boxes(5, 12, 3), images), "IsCrowd": (crowd, images), "ImInfo": _INFO}


def _learned() -> Iterator[Case]:
    outs = ("LocationIndex", "ScoreIndex", "TargetLabel", "TargetBBox", "BBoxInsideWeight")
    for most, edge, share, low in product((4, 30), (0.0, -1.0, 4.0), (0.25, 1.0), (0.3, 0.6)):
        attrs = {"rpn_batch_size_per_im": most, "rpn_straddle_thresh": edge, "rpn_fg_fraction": share,
                 "rpn_negative_overlap": low, "rpn_positive_overlap": 0.6, "use_random": False}  # fmt: skip
        yield Case("rpn_target_assign", {"Anchor": _anchors(3, 4).reshape(-1, 4), **_objects()}, outs, attrs)
    outs = ("Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights", "MaxOverlapWithGT")
    classes = (np.array([[1], [2], [2], [1], [1]], "int32"), [[2, 3]])
    for most, share, front, back, low in product((4, 30), (0.25, 0.75), (0.25, 0.5), (0.3, 0.5), (0.0, 0.1)):
        attrs = {"batch_size_per_im": most, "fg_fraction": share, "fg_thresh": front, "bg_thresh_hi": back,
                 "bg_thresh_lo": low, "bbox_reg_weights": [0.1, 0.1, 0.2, 0.2], "class_nums": 3,
                 "use_random": False}  # fmt: skip
        given = {"RpnRois": (_boxes(9, 14, 5), [[4, 5]]), "GtClasses": classes, **_objects()}
        for agnostic in {False, low > 0}:
            yield Case("generate_proposal_labels", given, outs, attrs | {"is_cls_agnostic": agnostic})


def _levels() -> Iterator[Case]:
    for lowest, highest, level, scale in ((2, 5, 4, 20), (3, 3, 3, 10), (1, 3, 2, 15)):
        attrs = {"min_level": lowest, "max_level": highest, "refer_level": level, "refer_scale": scale}
        if lowest == highest:  # a case has one variable for each output
            rois = (_boxes(9, 14, 5), [[4, 5]])
            yield Case("distribute_fpn_proposals", {"FpnRois": rois}, ("MultiFpnRois",), attrs, extra=("RestoreIndex",))
    for most in (3, 8, 50):
        lengths = [[[1, 3]], [[3, 2]]]
        given = {
            "MultiLevelRois": [(_boxes(4, 9, 1), lengths[0]), (_boxes(5, 19, 2), lengths[1])],
            "MultiLevelScores": [(values((4, 1), "float32", 0, 1), lengths[0]),
                                 (values((5, 1), "float32", 0, 1), lengths[1])],
        }  # fmt: skip
        yield Case("collect_fpn_proposals", given, ("FpnRois",), {"post_nms_topN": most})


def _regions() -> Iterator[Case]:
    for rows, columns, scale, dtype in product((1, 3), (1, 2), (1.0, 0.5), ("float32", "float64")):
        attrs = {"pooled_height": rows, "pooled_width": columns, "output_channels": 2, "spatial_scale": scale}
        given = {"X": values((2, 2 * rows * columns, 6, 7), dtype), "ROIs": (_boxes(5, 8).astype(dtype), [[2, 3]])}
        yield Case("psroi_pool", given, attrs=attrs, grads=("X",))
    for classes, most, dtype in product((2, 4), (4.135, 0.5), ("float32", "float64")):
        given = {"PriorBox": _boxes(6, 9).astype(dtype), "PriorBoxVar": np.array([0.1, 0.1, 0.2, 0.2], dtype),
                 "TargetBox": values((6, 4 * classes), dtype), "BoxScore": values((6, classes), dtype)}  # fmt: skip
        yield Case("box_decoder_and_assign", given, ("DecodeBox", "OutputAssignBox"), {"box_clip": most})


def _clicks() -> Iterator[Case]:
    for keep, dtype in product((True, False), ("float32", "float64")):
        given = {"X": (values((5, 4), dtype, 0, 9), [[2, 3]]), "CVM": values((2, 2), dtype, 0, 9)}
        yield Case("cvm", given, ("Y",), {"use_cvm": keep}, ("X",))


def proposal_cases() -> Iterator[Case]:
    """Every case, in a fixed order."""
    for grid in (_proposed, _learned, _levels, _regions, _clicks):
        yield from grid()
