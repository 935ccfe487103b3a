"""bicubic_interp_v2 beside a loop over places and sixteen neighbours, and the second versions of the other two."""

from __future__ import annotations

import numpy as np

from tests.ops.cases import Differentiable, family, values
from tests.ops.test_vision import BIG, COLUMNS, EVEN, ROWS, X, edge, last, middle, resized


def curve(d: float) -> float:
    """The share of an element at a distance."""
    d = abs(d)
    if d <= 1:
        return 1.25 * d**3 - 2.25 * d**2 + 1
    return -0.75 * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def bicubic(x: np.ndarray, height: int, width: int, places: list[list[float]]) -> np.ndarray:
    """Every element from sixteen, by their distances along both axes."""
    out = np.zeros((*x.shape[:2], height, width))
    for i, row in enumerate(places[0]):
        for j, column in enumerate(places[1]):
            for m in range(int(np.floor(row)) - 1, int(np.floor(row)) + 3):
                for n in range(int(np.floor(column)) - 1, int(np.floor(column)) + 3):
                    share = curve(row - m) * curve(column - n)
                    near = np.clip(m, 0, x.shape[2] - 1), np.clip(n, 0, x.shape[3] - 1)
                    out[:, :, i, j] += share * x[:, :, near[0], near[1]]
    return out


SMALL = values(2, 2, 3, 4)
MIDDLES = [[(k + 0.5) * n / m - 0.5 for k in range(m)] for n, m in ((3, 6), (4, 8))]
CORNERS = [[k * (n - 1) / (m - 1) for k in range(m)] for n, m in ((3, 5), (4, 7))]
LARGE, WIDE = bicubic(SMALL, 6, 8, MIDDLES), bicubic(SMALL, 5, 7, CORNERS)

family(
    globals(),
    Differentiable,
    {
        "bicubic_interp_v2": {
            "inputs": {"X": SMALL}, "attrs": {"scale": [2.0, 2.0], "align_corners": False}, "outputs": {"Out": LARGE},
        },
        "bicubic_interp_v2/corners_last": {
            "inputs": {"X": last(SMALL)}, "attrs": {"out_h": 5, "out_w": 7, "data_layout": "NHWC"},
            "outputs": {"Out": last(WIDE)},
        },
        "bicubic_interp_v2/given": {
            "inputs": {"X": SMALL, "OutSize": np.array([5, 7], "int32")}, "outputs": {"Out": WIDE}, "grads": ("X",),
        },
        "bilinear_interp_v2": {"inputs": {"X": X}, "attrs": {"out_h": 5, "out_w": 9}, "outputs": {"Out": BIG}},
        "bilinear_interp_v2/middles": {
            "inputs": {"X": EVEN}, "attrs": {"scale": [2.0], "align_corners": False, "align_mode": 0},
            "outputs": {"Out": resized(EVEN, (4, 8), middle)},
        },
        "bilinear_interp_v2/two_scales": {
            "inputs": {"X": EVEN}, "attrs": {"scale": [2.0, 2.0], "align_corners": False},
            "outputs": {"Out": resized(EVEN, (4, 8), edge)},
        },
        "nearest_interp_v2": {
            "inputs": {"X": X}, "attrs": {"out_h": 5, "out_w": 9},
            "outputs": {"Out": X[:, :, ROWS][..., COLUMNS]},
        },
        "nearest_interp_v2/scales": {
            "inputs": {"X": X}, "attrs": {"scale": [2.0, 3.0], "align_corners": False},
            "outputs": {"Out": X.repeat(2, 2).repeat(3, 3)},
        },
    },
)  # fmt: skip
