"""matrix_nms beside a loop over pairs of boxes, box by box."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fluidnb.errors import FluidError
from fluidnb.testing import run_op
from tests.ops.cases import Forward, family

BOXES = np.array([
    [[0, 0, 4, 4], [0, 0, 4, 3], [1, 0, 4, 4], [8, 8, 9, 9], [8, 8, 9.5, 9], [5, 5, 4, 4], [20, 20, 21, 21]],
    [[0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 5, 5], [3, 3, 5, 4], [9, 9, 12, 12], [9, 9, 11, 12]],
], float)  # fmt: skip
SCORES = np.random.default_rng(1).uniform(0.02, 0.98, (2, 3, 7))


def overlap(a: np.ndarray, b: np.ndarray, more: float) -> float:
    """Intersection over union of two boxes, 0 where they do not touch."""
    if (a[2:] < a[:2]).any() or (b[2:] < b[:2]).any() or (a[:2] > b[2:]).any() or (b[:2] > a[2:]).any():
        return 0.0
    wide, high = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) + more for k in (0, 1))
    shared = max(wide, 0) * max(high, 0)
    areas = sum((c[2] - c[0] + more) * (c[3] - c[1] + more) for c in (a, b))
    return float(shared / (areas - shared)) if shared else 0.0


def plain(score=0.1, post=0.0, top=-1, keep=-1, normalized=True, gaussian=False, sigma=2.0, background=0):
    """Rows, numbers and counts of all images."""
    rows, numbers, counts = [], [], []
    for image in range(2):
        found = []
        for k in range(3):
            order = sorted((i for i in range(7) if SCORES[image, k, i] > score), key=lambda i: -SCORES[image, k, i])
            order = order[: top if top > -1 else None] if k != background else []
            between = [
                [overlap(BOXES[image, i], BOXES[image, j], 0.0 if normalized else 1.0) for j in order] for i in order
            ]
            most = [max(between[i][:i], default=0.0) for i in range(len(order))]
            for n, i in enumerate(order):
                factor = 1.0
                for j in range(n):
                    o, m = between[n][j], most[j]
                    if gaussian:
                        factor = min(factor, math.exp((m * m - o * o) * sigma))
                    elif m < 1:
                        factor = min(factor, (1 - o) / (1 - m))
                if SCORES[image, k, i] * factor > post:
                    found.append((SCORES[image, k, i] * factor, k, i))
        found = sorted(found, key=lambda f: -f[0])[: keep if keep > -1 else None]
        rows += [[k, s, *BOXES[image, i]] for s, k, i in found]
        numbers += [[image * 7 + i] for _, _, i in found]
        counts.append(len(found))
    return {"Out": np.array(rows), "Index": np.array(numbers, "int32"), "RoisNum": np.array(counts, "int32")}


LIMITS = {"score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1}

family(
    globals(),
    Forward,
    {
        f"matrix_nms/{name}".rstrip("/"): {
            "inputs": {"BBoxes": BOXES, "Scores": SCORES}, "outputs": plain(**options), "attrs": {**LIMITS, **attrs},
        }
        for name, options, attrs in (
            ("", {}, {}),
            ("post", {"post": 0.3, "keep": 5}, {"post_threshold": 0.3, "keep_top_k": 5}),
            ("few", {"top": 3, "background": -1}, {"nms_top_k": 3, "background_label": -1}),
            ("gaussian", {"gaussian": True, "sigma": 3.0}, {"use_gaussian": True, "gaussian_sigma": 3.0}),
            ("pixels", {"normalized": False, "post": 0.2}, {"normalized": False, "post_threshold": 0.2}),
        )
    },
)  # fmt: skip


def test_nothing_is_left() -> None:
    found = run_op("matrix_nms", {"BBoxes": BOXES, "Scores": SCORES}, {**LIMITS, "score_threshold": 2.0})
    assert found["Out"].shape == (0, 6) and found["Index"].shape == (0, 1) and found["RoisNum"].tolist() == [0, 0]


def test_many_boxes_are_computed_in_parts() -> None:
    """A row of boxes, each a little right of the one before: every block reads the blocks before."""
    left = np.arange(300.0)
    boxes = np.stack([left, 0 * left, left + 4, 0 * left + 4], 1)[None]
    scores = np.linspace(0.9, 0.5, 300)[None, None]
    attrs = {**LIMITS, "background_label": -1}
    rows = run_op("matrix_nms", {"BBoxes": boxes, "Scores": scores}, attrs)["Out"]
    o = [(4 - d) / (4 + d) for d in range(5)]
    third = min((1 - o[1]) / (1 - o[1]), 1 - o[2])  # of the second box, and of the first one, which none is above
    by_left = {row[2]: row[1] for row in rows}
    assert by_left[0] == scores[0, 0, 0] and by_left[1] == pytest.approx(scores[0, 0, 1] * (1 - o[1]))
    assert by_left[2] == pytest.approx(scores[0, 0, 2] * third)
    factors = [by_left[i] / scores[0, 0, i] for i in (10, 127, 128, 129, 256, 299)]
    np.testing.assert_allclose(factors, factors[0], 1e-9)


@pytest.mark.parametrize(
    "inputs",
    [{"BBoxes": np.ones((2, 7, 5)), "Scores": SCORES}, {"BBoxes": BOXES, "Scores": SCORES[:, :, :6]},
     {"BBoxes": BOXES[0], "Scores": SCORES}],
)  # fmt: skip
def test_shapes_that_do_not_fit(inputs: dict[str, np.ndarray]) -> None:
    with pytest.raises(FluidError, match="matrix_nms"):
        run_op("matrix_nms", inputs, LIMITS)
