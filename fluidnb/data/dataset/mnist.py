"""MNIST: images of 28 x 28 handwritten digits, 60,000 to train and 10,000 to test.

Source: Y. LeCun, C. Cortes, C. Burges, The MNIST database of handwritten digits. The files are in the IDX format:
big-endian, a magic number, the sizes, the bytes. Fluid: paddle.dataset.mnist.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator

import numpy as np

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import Array
from fluidnb.data.dataset.synthetic_samples import dots
from fluidnb.data.reader.decorators import Reader

URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
TEST_IMAGE_MD5 = "9fb629c4189551a2d022fa330f9573f3"
TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
TEST_LABEL_MD5 = "ec29112dd5afa0611ce80d1b7f02629c"
TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
TRAIN_IMAGE_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
TRAIN_LABEL_MD5 = "d53e105ee54ea40749a09fcbcd1e9432"

_FILES = source.Files(
    "mnist",
    (TRAIN_IMAGE_URL, TRAIN_IMAGE_MD5),
    (TRAIN_LABEL_URL, TRAIN_LABEL_MD5),
    (TEST_IMAGE_URL, TEST_IMAGE_MD5),
    (TEST_LABEL_URL, TEST_LABEL_MD5),
)
fetch = _FILES.fetch
_SIDE, _TRAIN, _TEST = 28, 60_000, 10_000  # the last two also of the synthetic digits
_BLOCK = 1000  # synthetic digits that are drawn at once


def train() -> Reader:
    """The images to train with: (784 pixels as float32 from -1 to 1, row by row; the digit as an int).

    The synthetic ones are as many: digits of a dot font, shifted, faded and with noise.
    """
    return _reader(_FILES.paths(0, 1), _TRAIN, 1)


def test() -> Reader:
    """The images to test with, 10,000 of them; samples as in `train`."""
    return _reader(_FILES.paths(2, 3), _TEST, 2)


def _reader(paths: tuple[str, ...] | None, count: int, seed: int) -> Reader:
    def samples() -> Iterator[tuple[Array, int]]:
        for images, labels in _drawn(count, seed) if paths is None else [_read(*paths)]:
            for image, label in zip(images, labels, strict=True):
                yield image.astype(np.float32) / np.float32(255) * 2 - 1, int(label)

    return samples


def _read(images: str, labels: str) -> tuple[Array, Array]:
    pixels, digits = _idx(images, 3), _idx(labels, 1)
    with source.reading(labels):
        if len(pixels) != len(digits):
            raise ValueError(f"it has {len(digits)} labels for {len(pixels)} images")
    return pixels.reshape(len(pixels), -1), digits


def _idx(path: str, rank: int) -> Array:
    """An array out of an IDX file of unsigned bytes."""
    with source.reading(path):
        with gzip.open(path) as file:
            data = file.read()
        (magic,) = struct.unpack_from(">I", data)
        if magic != 0x0800 + rank:
            raise ValueError(f"its magic number is {magic}, not {0x0800 + rank}")
        shape = struct.unpack_from(f">{rank}I", data, 4)
        values = np.frombuffer(data, np.uint8, offset=4 + 4 * rank)
        if values.size != np.prod(shape, dtype=object):
            raise ValueError(f"it has {values.size} values for the sizes {shape}")
        return values.reshape(shape)


def _drawn(count: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Synthetic images: digits in dots of 3 x 3 pixels."""
    glyphs = np.kron(dots(), np.ones((1, 3, 3)))  # 21 x 15
    for block in range(count // _BLOCK):
        random = np.random.RandomState([seed, block])
        digits = random.randint(0, 10, _BLOCK)
        pixels = random.randint(0, 40, (_BLOCK, _SIDE, _SIDE)).astype(np.uint8)
        tops, lefts = random.randint(1, 7, _BLOCK), random.randint(2, 12, _BLOCK)
        inks = random.randint(140, 215, _BLOCK)
        for i, digit in enumerate(digits):
            glyph = (glyphs[digit] * inks[i]).astype(np.uint8)
            pixels[i, tops[i] : tops[i] + 21, lefts[i] : lefts[i] + 15] += glyph
        yield pixels.reshape(_BLOCK, -1), digits
