"""deformable_conv and deformable_conv_v1 beside a loop over windows and their elements."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fluidnb.errors import FluidError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, family, values
from tests.ops.images import conv


def between(image: np.ndarray, y: float, x: float) -> float:
    """An image at a place between four pixels, 0 beyond it."""
    height, width = image.shape
    top, left, total = int(np.floor(y)), int(np.floor(x)), 0.0
    for row, column in product((top, top + 1), (left, left + 1)):
        if 0 <= row < height and 0 <= column < width:
            total += image[row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def deformed(x, offset, mask, w, strides=(1, 1), paddings=(0, 0), dilations=(1, 1), groups=1, parts=1):
    """The convolution, element by element."""
    (n, c, _, _), (f, per_group, kh, kw), (oh, ow) = x.shape, w.shape, offset.shape[2:]
    out = np.zeros((n, f, oh, ow))
    for i, k, r, s, j, u, v in product(*map(range, (n, f, oh, ow, per_group, kh, kw))):
        channel = k // (f // groups) * per_group + j
        number = channel // (c // parts) * kh * kw + u * kw + v
        y = r * strides[0] - paddings[0] + u * dilations[0] + offset[i, 2 * number, r, s]
        z = s * strides[1] - paddings[1] + v * dilations[1] + offset[i, 2 * number + 1, r, s]
        factor = 1.0 if mask is None else mask[i, number, r, s]
        out[i, k, r, s] += w[k, j, u, v] * factor * between(x[i, channel], y, z)
    return out


def away(*shape: int, reach: float = 1.4) -> np.ndarray:
    """Offsets whose places are not near whole numbers, where the result has kinks."""
    found = values(*shape, low=-reach, high=reach)
    return np.floor(found) + 0.15 + 0.7 * (found - np.floor(found))


X, W = values(2, 4, 4, 5), values(4, 4, 2, 3)
OFFSET, MASK = away(2, 12, 3, 3), values(2, 6, 3, 3, low=0.1)
WIDE = {"strides": [2, 1], "paddings": [1, 2], "dilations": [1, 2], "groups": 2, "deformable_groups": 2}
FAR, FACTORS, HALF = away(2, 24, 3, 5, reach=4.0), values(2, 12, 3, 5), values(4, 2, 2, 3)
LINE = {"strides": (2, 1), "paddings": (1, 2), "dilations": (1, 2), "groups": 2, "parts": 2}

family(
    globals(),
    Differentiable,
    {
        "deformable_conv": {
            "inputs": {"Input": X, "Offset": OFFSET, "Mask": MASK, "Filter": W},
            "outputs": {"Output": deformed(X, OFFSET, MASK, W)},
        },
        "deformable_conv/groups": {
            "inputs": {"Input": X, "Offset": FAR, "Mask": FACTORS, "Filter": HALF}, "attrs": WIDE,
            "outputs": {"Output": deformed(X, FAR, FACTORS, HALF, **LINE)},
        },
        "deformable_conv_v1": {
            "inputs": {"Input": X, "Offset": OFFSET, "Filter": W},
            "outputs": {"Output": deformed(X, OFFSET, None, W)},
        },
        "deformable_conv_v1/groups": {
            "inputs": {"Input": X, "Offset": FAR, "Filter": HALF}, "attrs": WIDE,
            "outputs": {"Output": deformed(X, FAR, None, HALF, **LINE)},
        },
    },
)  # fmt: skip


def test_without_offsets_it_is_a_convolution() -> None:
    inputs = {"Input": X, "Offset": 0 * OFFSET, "Mask": 0 * MASK + 1, "Filter": W}
    np.testing.assert_allclose(run_op("deformable_conv", inputs)["Output"], conv(X, W), 1e-9)


def test_places_that_are_no_numbers_are_outside() -> None:
    lost = OFFSET.copy()
    lost[:, 0, 0, 0], lost[:, 1, 0, 1] = np.nan, 1e30
    without = MASK.copy()
    without[:, 0, 0, :2] = 0
    inputs = {"Input": X, "Mask": MASK, "Filter": W}
    found = run_op("deformable_conv", {**inputs, "Offset": lost})["Output"]
    wanted = run_op("deformable_conv", {**inputs, "Offset": OFFSET, "Mask": without})["Output"]
    np.testing.assert_allclose(found, wanted, 1e-9)


@pytest.mark.parametrize(
    ("changed", "attrs", "said"),
    [
        ({"Offset": OFFSET[:, :6]}, {}, "two numbers for each element"),
        ({"Offset": OFFSET[:, :, :2]}, {}, "two numbers for each element"),
        ({"Mask": MASK[:, :5]}, {}, "a number for each element"),
        ({}, {"deformable_groups": 3}, "must divide the channels"),
        ({}, {"groups": 2}, "number of input channels"),
        ({"Filter": values(4, 4, 7, 7)}, {}, "larger than the padded image"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit(changed, attrs, said) -> None:
    with pytest.raises(FluidError, match=said):
        run_op("deformable_conv", {"Input": X, "Offset": OFFSET, "Mask": MASK, "Filter": W, **changed}, attrs)
