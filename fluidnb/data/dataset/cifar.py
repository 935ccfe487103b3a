"""CIFAR-10 and CIFAR-100: colour photographs of 32 x 32 pixels in 10 and 100 classes, 50,000 and 10,000 of each.

Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009). The files are tar archives of
pickled batches, which are read as plain data (`plain_pickle`). Fluid: paddle.dataset.cifar.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import Array
from fluidnb.data.reader.decorators import Reader
from fluidnb.files import plain_pickle

URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL = URL_PREFIX + "cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL = URL_PREFIX + "cifar-100-python.tar.gz"
CIFAR100_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"
_FILES = source.Files("cifar", (CIFAR10_URL, CIFAR10_MD5), (CIFAR100_URL, CIFAR100_MD5))
fetch = _FILES.fetch
_VALUES = 3 * 32 * 32
_TRAIN, _TEST = 50_000, 10_000  # also of the synthetic images
_BLOCK = 500  # synthetic images that are drawn at once


def train10(cycle: bool = False) -> Reader:
    """CIFAR-10 to train with: (3,072 values as float32 from 0 to 1: reds row by row, greens, blues; class as an int).

    The synthetic images are as many: a coarse pattern for each class, with noise.
    """
    return _reader(10, "data_batch", cycle)


def test10(cycle: bool = False) -> Reader:
    """CIFAR-10 to test with, 10,000 images; samples as in `train10`."""
    return _reader(10, "test_batch", cycle)


def train100() -> Reader:
    """CIFAR-100 to train with: the samples of `train10`, with classes from 0 to 99."""
    return _reader(100, "train", False)


def test100() -> Reader:
    """CIFAR-100 to test with; samples as in `train100`."""
    return _reader(100, "test", False)


def _reader(classes: int, part: str, cycle: bool) -> Reader:
    paths = _FILES.paths([10, 100].index(classes))

    def samples() -> Iterator[tuple[Array, int]]:
        while True:
            for images, labels in _drawn(classes, part) if paths is None else _batches(paths[0], part):
                for image, label in zip(images, labels, strict=True):
                    yield (image / 255.0).astype(np.float32), int(label)
            if not cycle:
                return

    return samples


def _batches(path: str, part: str) -> Iterator[tuple[Array, list[int]]]:
    for name, data in source.contents(path, lambda n: part in posixpath.basename(n)):
        batch = plain_pickle.loads(data, f"{name} in {path}", encoding="bytes")
        with source.reading(path, name):
            yield _checked(batch)


def _checked(batch: Any) -> tuple[Array, list[int]]:
    if not isinstance(batch, dict):
        raise ValueError(f"it has a {type(batch).__name__}, no dict")
    images, labels = batch.get(b"data"), batch.get(b"labels", batch.get(b"fine_labels"))
    if not isinstance(images, np.ndarray) or images.shape[1:] != (_VALUES,):
        raise ValueError(f'its "data" is no array of rows of {_VALUES} bytes')
    if not isinstance(labels, list) or len(labels) != len(images):
        raise ValueError(f"it has no label for each of its {len(images)} images")
    return images, labels


def _drawn(classes: int, part: str) -> Iterator[tuple[Array, list[int]]]:
    """Synthetic images: every class is a pattern of 4 x 4 colours, made larger, shifted and covered with noise."""
    patterns = np.random.RandomState(classes).uniform(40, 215, (classes, 3, 4, 4))
    is_test = "test" in part
    for block in range((_TEST if is_test else _TRAIN) // _BLOCK):
        random = np.random.RandomState([int(is_test), block])
        labels = random.permutation(np.arange(_BLOCK) % classes)
        images = np.kron(patterns, np.ones((1, 1, 8, 8)))[labels]
        for image, shift in zip(images, random.randint(-2, 3, (_BLOCK, 2)), strict=True):
            image[:] = np.roll(image, shift, (1, 2))
        images += random.uniform(-40, 40, images.shape)
        yield images.round().astype(np.uint8).reshape(_BLOCK, -1), labels.tolist()
