"""Images on their way into a program: scaled, cropped, flipped, and channels first.

An image is an array of (height, width, channels), or of (height, width) where there is no colour.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fluidnb.data.dataset.bundled import Array
from fluidnb.data.dataset.image_files import batch_images_from_tar, load_image, load_image_bytes
from fluidnb.data.processing.resize import resize
from fluidnb.data.seeding import generator
from fluidnb.errors import OpValueError

__all__ = [
    "batch_images_from_tar", "center_crop", "left_right_flip", "load_and_transform", "load_image", "load_image_bytes",
    "random_crop", "resize_short", "simple_transform", "to_chw",
]  # fmt: skip


def resize_short(im: Array, size: int) -> Array:
    """Scale an image, by cubic interpolation, so that its shorter edge has a length.

    Args:
        size: of the shorter edge, in pixels.

    Returns:
        An image of the same dtype; integers are rounded, and kept within their dtype.

    Example:
        >>> resize_short(np.zeros((40, 30, 3), np.uint8), 15).shape
        (20, 15, 3)
    """
    height, width = _size(im)
    if size < 1:
        raise OpValueError("An edge has one pixel or more.", received=size)
    tall, wide = (size * height // width, size) if height > width else (size, size * width // height)
    return resize(im, tall, wide, "cubic")


def to_chw(im: Array, order: Sequence[int] = (2, 0, 1)) -> Array:
    """Put the channels first.

    Args:
        im: (height, width, channels).
        order: which axes of `im` the axes of the result are.

    Returns:
        (channels, height, width), a view.

    Example:
        >>> to_chw(np.zeros((4, 5, 3))).shape
        (3, 4, 5)
    """
    if sorted(order) != list(range(im.ndim)):
        raise OpValueError("order should name each axis once.", expected=f"0 to {im.ndim - 1}", received=tuple(order))
    return im.transpose(order)


def center_crop(im: Array, size: int, is_color: bool = True) -> Array:
    """The square in the middle of an image.

    Args:
        im: an image.
        size: of the square, in pixels.
        is_color: whether it has channels.

    Returns:
        A view of `im`.

    Example:
        >>> center_crop(np.arange(16).reshape(4, 4), 2, is_color=False).tolist()
        [[5, 6], [9, 10]]
    """
    height, width = _free(im, size, is_color)
    return _crop(im, height // 2, width // 2, size)


def random_crop(im: Array, size: int, is_color: bool = True) -> Array:
    """A square anywhere in an image, a view as in `center_crop`; `fluid.seed` fixes where.

    Example:
        >>> random_crop(np.zeros((40, 30, 3)), 20).shape
        (20, 20, 3)
    """
    height, width = _free(im, size, is_color)
    random = generator()
    return _crop(im, int(random.integers(height + 1)), int(random.integers(width + 1)), size)


def left_right_flip(im: Array, is_color: bool = True) -> Array:
    """The image in a mirror, a view.

    Example:
        >>> left_right_flip(np.array([[1, 2, 3]]), is_color=False).tolist()
        [[3, 2, 1]]
    """
    _free(im, 1, is_color)
    return im[:, ::-1]


def simple_transform(
    im: Array, resize_size: int, crop_size: int, is_train: bool, is_color: bool = True, mean: ArrayLike | None = None
) -> Array:
    """The usual way of an image: scale, crop, flip every other one in training, channels first, subtract the mean.

    Args:
        resize_size: of the shorter edge after scaling.
        crop_size: of the square that is cut out: anywhere in training, else in the middle.
        mean: a number for each channel, or an array of the result's shape; None: nothing.

    Returns:
        float32 of (channels, crop_size, crop_size), or (crop_size, crop_size) without colour.

    Example:
        >>> simple_transform(np.full((40, 30, 3), 9, np.uint8), 24, 20, False, mean=[1, 2, 3])[:, 0, 0].tolist()
        [8.0, 7.0, 6.0]
    """
    im = resize_short(im, resize_size)
    if is_train:
        im = random_crop(im, crop_size, is_color)
        if generator().integers(2):
            im = left_right_flip(im, is_color)
    else:
        im = center_crop(im, crop_size, is_color)
    image: Array = np.ascontiguousarray(to_chw(im) if is_color else im, np.float32)
    if mean is None:
        return image
    shift = np.asarray(mean, np.float32)
    shift = shift[:, None, None] if is_color and shift.ndim == 1 else shift
    try:
        shift = np.broadcast_to(shift, image.shape)
    except ValueError:
        raise OpValueError(
            "mean does not fit the image.", expected=f"a number a channel, or the shape {image.shape}", received=mean
        ) from None
    return image - shift


def load_and_transform(
    filename: str, resize_size: int, crop_size: int, is_train: bool, is_color: bool = True,
    mean: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """`load_image` and `simple_transform` in one go."""
    return simple_transform(load_image(filename, is_color), resize_size, crop_size, is_train, is_color, mean)


def _size(im: Any) -> tuple[int, int]:
    if not isinstance(im, np.ndarray) or im.ndim not in (2, 3) or not im.size:
        received = im.shape if isinstance(im, np.ndarray) else type(im).__name__
        raise OpValueError("An image is an array of (height, width[, channels]).", received=received)
    return im.shape[0], im.shape[1]


def _free(im: Array, size: int, is_color: bool) -> tuple[int, int]:
    """The largest offsets of a square, down and to the right."""
    height, width = _size(im)
    if is_color != (im.ndim == 3):
        raise OpValueError(f"is_color={is_color} does not fit an image of the shape {im.shape}.")
    if not 1 <= size <= min(height, width):
        raise OpValueError(f"A square of {size} cannot be cut out of an image of {height} x {width}.")
    return height - size, width - size


def _crop(im: Array, top: int, left: int, size: int) -> Array:
    return im[top : top + size, left : left + size]
