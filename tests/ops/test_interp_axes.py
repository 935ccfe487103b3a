"""linear_interp_v2 and trilinear_interp_v2 beside a sum over all elements, by their distances along each axis."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, family, values
from tests.ops.images import last
from tests.ops.test_vision import corner, edge, middle


def resized(x: np.ndarray, sizes: tuple[int, ...], place: Callable[[int, int, int], float]) -> np.ndarray:
    """Every element of a new size: all elements of the old one by how near they are, below 1 along each axis."""
    out = np.zeros((*x.shape[:2], *sizes))
    for to in product(*map(range, sizes)):
        at = [min(place(k, n, m), n - 1) for k, n, m in zip(to, x.shape[2:], sizes, strict=True)]
        for of in product(*map(range, x.shape[2:])):
            share = np.prod([max(0.0, 1 - abs(a - i)) for a, i in zip(at, of, strict=True)])
            out[(..., *to)] += share * x[(..., *of)]
    return out


LINE, ROOM = values(2, 3, 4), values(2, 2, 2, 3, 2)
WIDE, HIGH = values(1, 2, 8), values(1, 1, 4, 4, 4)

family(
    globals(),
    Differentiable,
    {
        "linear_interp_v2": {
            "inputs": {"X": LINE}, "attrs": {"out_w": 7, "out_h": -1, "out_d": -1},
            "outputs": {"Out": resized(LINE, (7,), corner)},
        },
        "linear_interp_v2/edges": {
            "inputs": {"X": WIDE}, "attrs": {"scale": [0.5], "align_corners": False},
            "outputs": {"Out": resized(WIDE, (4,), edge)},
        },
        "linear_interp_v2/last": {
            "inputs": {"X": last(LINE)},
            "attrs": {"scale": [2.0], "align_corners": False, "align_mode": 0, "data_layout": "NHWC"},
            "outputs": {"Out": last(resized(LINE, (8,), middle))},
        },
        "linear_interp_v2/given": {
            "inputs": {"X": LINE, "OutSize": np.array([7], "int32")}, "outputs": {"Out": resized(LINE, (7,), corner)},
            "grads": ("X",),
        },
        "trilinear_interp_v2": {
            "inputs": {"X": ROOM}, "attrs": {"out_d": 3, "out_h": 2, "out_w": 5},
            "outputs": {"Out": resized(ROOM, (3, 2, 5), corner)},
        },
        "trilinear_interp_v2/middles": {
            "inputs": {"X": ROOM}, "attrs": {"scale": [2.0, 1.0, 4.0], "align_corners": False, "align_mode": 0},
            "outputs": {"Out": resized(ROOM, (4, 3, 8), middle)},
        },
        "trilinear_interp_v2/smaller": {
            "inputs": {"X": HIGH}, "attrs": {"scale": [0.5], "align_corners": False, "align_mode": 0},
            "outputs": {"Out": resized(HIGH, (2, 2, 2), middle)},
        },
        "trilinear_interp_v2/last": {
            "inputs": {"X": last(ROOM)}, "attrs": {"out_d": 2, "out_h": 5, "out_w": 3, "data_layout": "NHWC"},
            "outputs": {"Out": last(resized(ROOM, (2, 5, 3), corner))},
        },
        "trilinear_interp_v2/each": {
            "inputs": {"X": ROOM, "SizeTensor": [np.array([n], "int32") for n in (3, 2, 5)]},
            "outputs": {"Out": resized(ROOM, (3, 2, 5), corner)}, "grads": ("X",),
        },
    },
)  # fmt: skip


def test_one_scale_or_one_for_each_axis() -> None:
    with pytest.raises(RuleError, match="one scale, or one for each axis"):
        run_op("trilinear_interp_v2", {"X": ROOM}, {"scale": [2.0, 2.0]})
    with pytest.raises(RuleError, match="needs a depth and a height and a width"):
        run_op("trilinear_interp_v2", {"X": ROOM}, {"out_h": 2, "out_w": 2})
    with pytest.raises(RuleError, match="needs a width"):
        run_op("linear_interp_v2", {"X": LINE})
