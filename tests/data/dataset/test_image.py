"""Images: scaling, cropping, flipping, channels first, and all of it in one go."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.data import seeding
from fluidnb.data.dataset import image
from fluidnb.errors import OpValueError
from tests.tools.refused import refused

IM = np.random.RandomState(0).randint(0, 256, (12, 9, 3)).astype(np.uint8)


def test_resize_short_keeps_what_is_smooth() -> None:
    y, x = np.mgrid[0:60, 0:40]
    ramp = (2.0 * y + 3.0 * x)[..., None] * [1.0, 2.0]
    for size in (20, 40, 80):
        scaled = image.resize_short(ramp, size)
        assert scaled.shape == (size * 60 // 40, size, 2)
        rows, columns = ((np.arange(n) + 0.5) * 40 / size - 0.5 for n in scaled.shape[:2])
        expected = (2.0 * rows[:, None] + 3.0 * columns)[..., None] * [1.0, 2.0]
        inner = slice(4, -4)
        assert np.abs(scaled - expected)[inner, inner].max() < 0.5  # with a = -0.75 a ramp is kept nearly
        assert np.allclose(image.resize_short(np.full((60, 40), 7.0), size), 7.0)
    assert (image.resize_short(IM, 9) == IM).all()  # the size that it has


def test_resize_short_has_the_weights_of_cubic_interpolation() -> None:
    line = np.zeros((1, 8))
    line[0, 4] = 1.0
    scaled = image.resize_short(np.repeat(line, 8, 0), 4)[0]
    # Output 2 lies at 4.5, between pixels 4 and 5; weights at distances 0.5 and 1.5 for a = -0.75.
    assert np.allclose(scaled, [0, -0.09375, 0.59375, 0])


def test_resize_short_rounds_and_stays_in_the_dtype() -> None:
    edge = np.zeros((8, 8), np.uint8)
    edge[:, 4:] = 255
    scaled = image.resize_short(edge, 16)
    assert scaled.dtype == np.uint8 and scaled.min() == 0 and scaled.max() == 255
    assert (np.diff(scaled[0].astype(int)) >= 0).all()  # the swing beyond 0 and 255 is cut, not wrapped round
    assert image.resize_short(IM.astype("f4"), 6).dtype == np.float32
    assert image.resize_short(np.zeros((9, 12, 3)), 6).shape == (6, 8, 3)


def test_crops() -> None:
    assert (image.center_crop(IM, 4) == IM[4:8, 2:6]).all()
    seeding.seed(4)
    crops = [image.random_crop(IM, 8) for _ in range(60)]
    seeding.seed(4)
    assert all((a == image.random_crop(IM, 8)).all() for a in crops)
    seeding.seed(None)
    places = {(k, j) for crop in crops for k in range(5) for j in range(2) if (IM[k : k + 8, j : j + 8] == crop).all()}
    assert places == {(k, j) for k in range(5) for j in range(2)}  # each place, the last ones too
    assert (image.random_crop(IM[:9, :, 0], 9, is_color=False) == IM[:9, :, 0]).all()


def test_flip_and_channels_first() -> None:
    assert (image.left_right_flip(IM)[:, 0] == IM[:, 8]).all()
    assert (image.left_right_flip(IM[..., 0], is_color=False)[:, 0] == IM[:, 8, 0]).all()
    assert (image.to_chw(IM)[2] == IM[..., 2]).all() and image.to_chw(IM, (0, 1, 2)).shape == IM.shape


def test_simple_transform() -> None:
    made = image.simple_transform(IM, 9, 8, False, mean=[1, 2, 3])
    assert made.dtype == np.float32 and made.flags["C_CONTIGUOUS"]
    assert (made == IM[2:10, 0:8].transpose(2, 0, 1) - np.array([1, 2, 3])[:, None, None]).all()
    grey = image.simple_transform(IM[..., 0], 9, 9, False, is_color=False, mean=np.ones((9, 9)))
    assert (grey == IM[1:10, :, 0] - 1.0).all()
    seeding.seed(1)
    seen = [image.simple_transform(IM, 9, 9, True) for _ in range(40)]
    seeding.seed(None)
    rows = [image.to_chw(IM[k : k + 9]) for k in range(4)]
    for wanted in (*rows, *(row[:, :, ::-1] for row in rows)):
        assert any((s == wanted).all() for s in seen)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: image.resize_short(IM, 0), "one pixel or more"),
        (lambda: image.resize_short(IM[None], 4), "An image is an array"),
        (lambda: image.resize_short([[1]], 4), "An image is an array"),
        (lambda: image.center_crop(IM, 10), "A square of 10 cannot be cut out of an image of 12 x 9"),
        (lambda: image.random_crop(IM, 0), "A square of 0 cannot be cut out"),
        (lambda: image.random_crop(IM, 4, is_color=False), "is_color=False does not fit"),
        (lambda: image.left_right_flip(IM[..., 0]), "is_color=True does not fit"),
        (lambda: image.to_chw(IM, (0, 1)), "order should name each axis once"),
        (lambda: image.simple_transform(IM, 9, 8, False, mean=[1, 2]), "mean does not fit the image"),
    ],
)
def test_wrong_arguments(call, message: str) -> None:
    with refused(OpValueError, message):
        call()
