"""Images in another size: the values that OpenCV gives, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.data.processing.resize import METHODS, resize
from fluidnb.errors import OpValueError

IMAGE = (np.arange(35).reshape(7, 5) * 37 % 256).astype("float32")
#: What OpenCV makes of the image: all of 4 x 3 pixels, and the second row of 9 x 8.
RECORDED = {
    "nearest": (
        [[0, 37, 111], [185, 222, 40], [43, 80, 154], [157, 194, 12]],
        [0, 0, 37, 37, 74, 111, 111, 148],
    ),
    "linear": (
        [[81.71, 47.38, 109.04], [117.46, 179.12, 91.46], [142.54, 54.88, 116.54], [124.96, 186.62, 152.29]],
        [123.33, 139.52, 151.98, 68.44, 38.23, 61.35, 84.48, 100.67],
    ),
    "cubic": (
        [[87, 36.22, 112.19], [108.99, 194.59, 89.33], [144.67, 39.41, 125.01], [121.81, 197.78, 147]],
        [131.21, 164.02, 164.78, 51.34, -6.17, 36.8, 82.1, 113.32],
    ),
    "area": (
        [[94.09, 65.51, 102.77], [118.66, 148.6, 112.71], [121.29, 85.4, 115.34], [131.23, 168.49, 139.91]],
        [132.14, 146.94, 169.14, 52.46, 30.69, 60.29, 82.49, 97.29],
    ),
}


@pytest.mark.parametrize("method", METHODS)
def test_the_values_of_opencv(method: str) -> None:
    smaller, row = RECORDED[method]
    np.testing.assert_allclose(resize(IMAGE, 4, 3, method), smaller, 0, 0.006)
    np.testing.assert_allclose(resize(IMAGE, 9, 8, method)[1], row, 0, 0.006)
    colours = np.stack([IMAGE, IMAGE[::-1]], 2)
    np.testing.assert_array_equal(resize(colours, 9, 8, method)[..., 0], resize(IMAGE, 9, 8, method))
    whole = resize(IMAGE.astype("uint8"), 9, 8, method)
    assert whole.dtype == np.uint8
    np.testing.assert_allclose(whole, resize(IMAGE, 9, 8, method).clip(0, 255), 0, 0.5)


def test_the_same_size_is_a_copy() -> None:
    same = resize(IMAGE, 7, 5)
    assert same is not IMAGE and np.array_equal(same, IMAGE)


def test_a_scale_moves_the_pixels() -> None:
    """0.3 of 7 rows are 2, which are not spread over all of the image."""
    found = resize(IMAGE, 2, 5, "linear", (0.3, 1.0))
    below = IMAGE[1] * (1 - 1 / 6) + IMAGE[2] * (1 / 6)
    np.testing.assert_allclose(found[0], below, 1e-5)


@pytest.mark.parametrize("size", [(0, 3), (3, -1), (1 << 20, 1 << 20)])
def test_sizes_that_no_image_has(size: tuple[int, int]) -> None:
    with pytest.raises(OpValueError, match="cannot have this size"):
        resize(IMAGE, *size)
    with pytest.raises(OpValueError, match="no interpolation lanczos"):
        resize(IMAGE, 2, 2, "lanczos")
