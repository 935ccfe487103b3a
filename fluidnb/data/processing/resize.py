"""Images in another size, with the coordinates and weights of OpenCV."""

import math
from typing import Any

import numpy as np

from fluidnb.errors import OpValueError, near

#: Interpolations, in the order of OpenCV's numbers.
METHODS = ("nearest", "linear", "cubic", "area")
#: Pixels of a result at most, so that a damaged file or a wrong number takes no memory.
LIMIT = 1 << 27


def resize(
    image: np.ndarray, height: int, width: int, method: str = "linear", scale: tuple[float, float] | None = None
) -> np.ndarray:
    """Resizes an image.

    Args:
        image: (height, width), or (height, width, channels).
        method: ``nearest``, ``linear``, ``cubic`` (a = -0.75) or ``area``, without smoothing as in OpenCV.
        scale: new pixels for an old one, down and to the right; default from the sizes.

    Returns:
        An image of the same dtype; integers are rounded, and kept within their dtype.

    Raises:
        OpValueError: a size below 1, or another method.

    Example:
        >>> resize(np.array([[0.0, 4.0]]), 1, 4).tolist()
        [[0.0, 1.0, 3.0, 4.0]]
    """
    if method not in METHODS:
        raise OpValueError(
            f"There is no interpolation {method}.", expected=", ".join(METHODS), received=method,
            hint=near(method, METHODS),
        )  # fmt: skip
    if min(height, width) < 1 or height * width > LIMIT:
        raise OpValueError(
            "An image cannot have this size.", expected=f"1 to {LIMIT:,} pixels", received=f"{height} x {width}"
        )
    if (height, width) == image.shape[:2]:
        return image.copy()
    if method == "nearest":
        rows, columns = (
            np.minimum(np.arange(new) / ratio, old - 1).astype(int)
            for new, old, ratio in zip((height, width), image.shape, _scales(image, height, width, scale), strict=False)
        )
        return image[rows[:, None], columns]
    values, scales = image, _scales(image, height, width, scale)
    if method == "area" and max(scales) > 1:
        method = "enlarged area"
    for axis, new in enumerate((height, width)):
        values = _along(values, axis, new, method, scales[axis])
    if np.issubdtype(image.dtype, np.integer):
        values = values.round() if method == "cubic" else np.floor(values + 0.5)
        values = values.clip(np.iinfo(image.dtype).min, np.iinfo(image.dtype).max)
    return values.astype(image.dtype)


def _scales(image: np.ndarray, height: int, width: int, scale: tuple[float, float] | None) -> tuple[float, float]:
    return scale or (height / image.shape[0], width / image.shape[1])


def _along(image: np.ndarray, axis: int, new: int, method: str, scale: float) -> np.ndarray:
    """Weighted sums of pixels along an axis, as float64."""
    places, weights = _taps(image.shape[axis], new, method, scale)
    sizes = [1] * image.ndim
    sizes[axis] = new
    total: Any = 0.0
    for i in range(places.shape[1]):
        total = total + np.take(image, places[:, i], axis) * weights[:, i].reshape(sizes)
    result: np.ndarray = total
    return result


def _taps(old: int, new: int, method: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights of the old pixels of each new one."""
    if method == "area":
        begin, end = np.arange(new) / scale, np.minimum((np.arange(new) + 1) / scale, old)
        places = np.floor(begin).astype(int)[:, None] + np.arange(math.ceil(1 / scale) + 1)
        covered = np.minimum(places + 1, end[:, None]) - np.maximum(places, begin[:, None])
        weights = np.maximum(covered, 0.0) / (end - begin)[:, None]
        return places.clip(0, old - 1), weights
    if method == "enlarged area":
        first = np.floor(np.arange(new) / scale).astype(int)
        part = np.arange(1, new + 1) - (first + 1) * scale
        part = np.where(part > 0, part - np.floor(part), 0.0)
        return (first[:, None] + np.arange(2)).clip(0, old - 1), np.stack([1 - part, part], 1)
    at = (np.arange(new) + 0.5) / scale - 0.5
    first = np.floor(at).astype(int)
    taps = np.arange(-1, 3) if method == "cubic" else np.arange(2)
    places = first[:, None] + taps
    x = np.abs(at[:, None] - places)
    if method == "cubic":
        near_part, far_part = 1.25 * x**3 - 2.25 * x**2 + 1, -0.75 * (x**3 - 5 * x**2 + 8 * x - 4)
        weights = np.where(x <= 1, near_part, far_part)
    else:
        weights = 1 - x
    return places.clip(0, old - 1), weights
