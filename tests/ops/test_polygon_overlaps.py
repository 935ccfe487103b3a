"""Overlaps of polygons, and suppression among them."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from fluidnb_kernels.detection.polygons import areas, polygon_overlaps, shared_areas

ATTRS = {"score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1, "background_label": -1}


def stars(count, corners, seed):
    """Polygons [count, corners, 2] around points that are near each other, some of them clockwise."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, (count, corners)), -1)[:, :: rng.choice([1, -1])]
    spokes = rng.uniform(1, 4, angle.shape)[..., None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    return rng.uniform(3, 6, (count, 1, 2)) + spokes


def covers(polygon, x, y):
    """Whether points are inside a polygon: an odd number of its edges is to their right."""
    odd = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, 0), strict=True):
        if y0 != y1:
            odd ^= ((y0 > y) != (y1 > y)) & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return odd


@pytest.mark.parametrize("corners", [4, 8, 12, 16])
def test_shared_areas_beside_points_of_a_fine_grid(corners):
    a, b = stars(1, corners, corners), stars(5, corners, corners + 1)
    x, y = np.meshgrid(*[(np.arange(600) + 0.5) / 50 - 1] * 2)
    for polygon, area in zip(b, shared_areas(a, b), strict=True):
        counted = (covers(a[0], x, y) & covers(polygon, x, y)).sum() / 50**2
        assert area == pytest.approx(counted, abs=0.03)
        assert shared_areas(polygon[None], a)[0] == pytest.approx(area, rel=1e-9)


def test_of_itself_beside_itself_and_apart():
    square = np.array([0.0, 0, 2, 0, 2, 2, 0, 2])
    back = square.reshape(-1, 2)[::-1].ravel()
    others = np.stack([square, back, square + [2, 0] * 4, square + 5, square / 2])
    np.testing.assert_allclose(polygon_overlaps(square, others), [1, 1, 0, 0, 0.25], atol=1e-12)


def test_polygons_without_area_overlap_nothing():
    line, square = np.array([0.0, 0, 1, 1, 2, 2, 3, 3]), np.array([0.0, 0, 2, 0, 2, 2, 0, 2])
    assert areas(line.reshape(1, 4, 2)) == 0
    assert polygon_overlaps(line, np.stack([line, square])).tolist() == [0, 0]
    assert polygon_overlaps(square, np.zeros((0, 8))).shape == (0,)


@pytest.mark.parametrize("limit", [0.1, 0.4])
def test_suppression_among_polygons(limit):
    polygons = stars(9, 4, 3).reshape(1, 9, 8)
    scores = np.random.default_rng(0).permutation(9)[None, None] / 10 + 0.15
    kept = []
    for i in np.argsort(-scores[0, 0]):
        if all(polygon_overlaps(polygons[0, i], polygons[0, k : k + 1])[0] <= limit for k in kept):
            kept.append(i)
    out = run_op("multiclass_nms", {"BBoxes": polygons, "Scores": scores}, {**ATTRS, "nms_threshold": limit})["Out"]
    assert 1 < len(kept) < 9 and out.lod() == [[0, len(kept)]]
    np.testing.assert_allclose(out.array[:, 1], scores[0, 0, kept])
    np.testing.assert_allclose(out.array[:, 2:], polygons[0, kept])


@pytest.mark.parametrize("shape", [(1, 9, 6), (1, 9, 5)])
def test_other_widths_are_refused(shape):
    with pytest.raises(RuleError, match="must hold boxes"):
        run_op("multiclass_nms", {"BBoxes": np.zeros(shape), "Scores": np.zeros((1, 1, 9))}, ATTRS)


def test_boxes_class_by_class_are_no_polygons():
    operands = {"BBoxes": (np.zeros((9, 2, 8)), [[9]]), "Scores": (np.zeros((9, 2)), [[9]])}
    with pytest.raises(RuleError, match="must hold boxes"):
        run_op("multiclass_nms", operands, ATTRS)
