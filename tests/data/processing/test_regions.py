"""Regions of text, judged by rectangles that are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fluidnb.data.processing import ProcessingConfig, Region, postprocess
from fluidnb.data.processing.config import Step
from fluidnb.data.processing.regions import regions, smallest_rectangle
from fluidnb.errors import EnforceNotMet, NotBuiltYet


def corners_of(middle: tuple[float, float], width: float, height: float, degrees: float) -> np.ndarray:
    """The corners of a rectangle that is turned."""
    angle = math.radians(degrees)
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    half = np.array([[-width, -height], [width, -height], [width, height], [-width, height]]) / 2
    return half @ turn + middle


def drawn(shape: tuple[int, int], corners: np.ndarray, value: float = 0.9) -> np.ndarray:
    """A map whose pixels are above 0 inside a convex polygon."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    inside = np.ones(shape, bool)
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, 0), strict=True):
        inside &= (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= -1e-9
    return inside * value


def far(found: Any, wanted: np.ndarray) -> float:
    """The largest distance of a corner to the nearest one of the others, both ways."""
    apart = np.hypot(*(np.asarray(found)[:, None] - wanted[None]).transpose(2, 0, 1))
    return float(max(apart.min(0).max(), apart.min(1).max()))


@pytest.mark.parametrize("degrees", [0, 7, 20, 30, 45, 60, 89, 90, 130, 175])
def test_turned_rectangles(degrees: float) -> None:
    wanted = corners_of((100.3, 80.6), 90, 24, degrees)
    (found,) = regions(drawn((160, 200), wanted), unclip_ratio=1.5)
    apart = 90 * 24 * 1.5 / (2 * (90 + 24))
    grown = corners_of((100.3, 80.6), 90 + 2 * apart, 24 + 2 * apart, degrees)
    assert far(found.corners, grown) < 2.5
    assert 0.8 < found.score <= 0.9 + 1e-9
    (x0, y0), (x1, y1), (x2, y2), _ = found.corners
    assert (x1 - x0) * (y2 - y1) - (y1 - y0) * (x2 - x1) > 0, "clockwise, as y points down"
    assert x0 + y0 <= min(x + y for x, y in found.corners) + 1e-6 or degrees not in (0, 7, 90, 175)


def test_the_smallest_rectangle_beside_all_angles() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        points = rng.normal(size=(12, 2)) * (30, 8) @ np.linalg.qr(rng.normal(size=(2, 2)))[0]
        corners = smallest_rectangle(points)
        area = np.hypot(*(corners[1] - corners[0])) * np.hypot(*(corners[3] - corners[0]))
        tried = []
        for angle in np.linspace(0, math.pi / 2, 2000):
            turned = points @ np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            tried.append(np.prod(np.ptp(turned, axis=0)))
        assert area <= min(tried) + 1e-6 and area == pytest.approx(min(tried), rel=5e-3)
        for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, 0), strict=True):
            side = (bx - ax) * (points[:, 1] - ay) - (by - ay) * (points[:, 0] - ax)
            assert side.min() > -1e-6 * area, "all points are inside"


def components(mask: np.ndarray) -> set[frozenset[tuple[int, int]]]:
    """Groups of pixels that touch, by a search from each."""
    left = {(int(y), int(x)) for y, x in np.argwhere(mask)}
    found = set()
    while left:
        waiting = [left.pop()]
        group = set(waiting)
        while waiting:
            y, x = waiting.pop()
            near = {(y + i, x + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
            left -= near
            group |= near
            waiting += near
        found.add(frozenset(group))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_every_group_of_pixels_is_a_candidate(seed: int) -> None:
    mask = np.random.default_rng(seed).random((24, 31)) < 0.3 + 0.05 * seed
    wanted = components(mask)
    found = regions(mask * 0.9, box_thresh=0, unclip_ratio=0)
    boxes = []
    for group in wanted:
        corners = smallest_rectangle(np.array([(x, y) for y, x in group], float))
        edges = np.hypot(*(corners[1] - corners[0])), np.hypot(*(corners[3] - corners[0]))
        if min(edges) >= 5:
            boxes.append(corners)
    assert len(found) == len(boxes)
    for corners in boxes:
        assert min(far(each.corners, corners) for each in found) < 1e-6


def test_options() -> None:
    text = np.zeros((60, 80))
    text[5:15, 5:35], text[30:40, 5:35], text[50:52, 5:35] = 0.9, 0.5, 0.9
    assert [each.score for each in regions(text)] == pytest.approx([0.9])
    assert [each.score for each in regions(text, box_thresh=0.4)] == pytest.approx([0.9, 0.5])
    assert len(regions(text, box_thresh=0.4, max_candidates=1)) == 1
    assert not regions(text, thresh=0.95) and not regions(np.zeros((5, 5)))
    (plain,) = regions(text, unclip_ratio=0.0)
    assert plain.corners == ((5, 5), (34, 5), (34, 14), (5, 14))
    (wider,) = regions(text, unclip_ratio=0.0, dilate=True)
    assert wider.corners == ((5, 5), (35, 5), (35, 15), (5, 15))
    triangle = np.tril(np.full((40, 40), 0.9))
    assert not regions(triangle) and regions(triangle, whole=True)[0].score == pytest.approx(0.9)


def run(options: dict[str, Any], array: np.ndarray, images: Any = None) -> list[Any]:
    """The results of the step."""
    config = ProcessingConfig("inference.yml", "PreProcess", (), (Step("DBPostProcess", options),))
    return postprocess(config, [array], images)


def test_the_step() -> None:
    text = np.zeros((2, 1, 40, 60), "float32")
    text[0, 0, 10:20, 10:40] = 0.9
    options = {"thresh": 0.3, "box_thresh": 0.6, "max_candidates": 1000, "unclip_ratio": 0.0}
    one, two = run(options, text)
    assert one[0].corners == ((10, 10), (39, 10), (39, 19), (10, 19)) and two == []
    assert str(one[0]) == "0.9000  (10.0, 10.0) (39.0, 10.0) (39.0, 19.0) (10.0, 19.0)"
    images = [np.zeros((80, 90, 3), "uint8")] * 2
    assert run(options, text, images)[0] == [Region(one[0].score, ((15, 20), (58, 20), (58, 38), (15, 38)))]
    assert run({**options, "unclip_ratio": 9}, text, images)[0][0].corners[0] == (0, 0), "inside the image"
    with pytest.raises(NotBuiltYet, match="has regions of text as poly"):
        run({"box_type": "poly"}, text)
    for array, given in ((text[0], None), (text, images[:1])):
        with pytest.raises(EnforceNotMet, match="do not fit DBPostProcess"):
            run(options, array, given)
