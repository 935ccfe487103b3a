"""Handwritten digits: 1,797 real images of 8 x 8 pixels, as bundled with scikit-learn.

Source: E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository; CC BY 4.0.
"""

import functools

import numpy as np

from fluidnb.data.dataset.bundled import Array, load, part
from fluidnb.data.reader.decorators import Reader


def train() -> Reader:
    """1,438 samples: (64 pixels as float32 from -1 to 1, row by row; the digit as an int)."""
    return part(_all(), test=False)


def test() -> Reader:
    """The other 359 samples, every fifth one; samples as in `train`."""
    return part(_all(), test=True)


@functools.cache
def _all() -> tuple[Array, Array]:
    pixels, digits = load("digits")  # pixels from 0 to 16
    return (pixels / 8 - 1).astype(np.float32), digits.astype(np.int64)
