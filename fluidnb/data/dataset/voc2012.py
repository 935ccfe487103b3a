"""VOC2012: photographs with a picture of the same size that says what is at each pixel, 2,913 of them.

Source: M. Everingham et al., The PASCAL Visual Object Classes Challenge 2012. The file is a tar archive of JPEGs and
PNGs; Pillow has to be installed to read it. Fluid: paddle.dataset.voc2012.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import Array
from fluidnb.data.dataset.image_files import decode
from fluidnb.data.reader.decorators import Reader

VOC_URL = "http://host.robots.ox.ac.uk/pascal/VOC/voc2012/VOCtrainval_11-May-2012.tar"
VOC_MD5 = "6cd6e144f989b92b3379bac3b3de84fd"
_FILES = source.Files("voc2012", (VOC_URL, VOC_MD5))
fetch = _FILES.fetch
_ROOT = "VOCdevkit/VOC2012"
_CLASSES = 21  # 0 is the background
_EDGE = 255  # what is between things, and counts as nothing
_TRAIN, _VAL = 1_464, 1_449  # also of the synthetic images


def train() -> Reader:
    """All images: (the photograph, what is at each pixel).

    The synthetic ones are as many, and smaller: discs and squares, each class in a different colour.

    Returns:
        A reader of uint8 (height, width, 3) with red, green and blue, and uint8 (height, width): 0 for the background,
        1 to 20 for things, 255 for their edges. Sizes differ.
    """
    return _reader("trainval")


def test() -> Reader:
    """The part of the images that Paddle tests with, the set called ``train``, 1,464 of them; samples as in `train`."""
    return _reader("train")


def val() -> Reader:
    """The other part of the images, 1,449 of them; samples as in `train`."""
    return _reader("val")


def _reader(part: str) -> Reader:
    paths = _FILES.paths()
    return lambda: _drawn(part) if paths is None else _stored(paths[0], part)


def _stored(path: str, part: str) -> Iterator[tuple[Array, Array]]:
    import tarfile

    with source.reading(path), tarfile.open(path) as archive:

        def read(name: str) -> bytes:
            file = archive.extractfile(f"{_ROOT}/{name}")
            if file is None:
                raise KeyError(f"{name} in it is no file")
            return file.read()

        for name in read(f"ImageSets/Segmentation/{part}.txt").decode("ascii").split():
            image, label = f"JPEGImages/{name}.jpg", f"SegmentationClass/{name}.png"
            yield decode(read(image), image), decode(read(label), label)


def _drawn(part: str) -> Iterator[tuple[Array, Array]]:
    """Synthetic images: one to three things before a ground that changes from top to bottom, with noise."""
    colours = np.random.RandomState(21).randint(40, 216, (_CLASSES, 3))
    numbers = {"train": range(_TRAIN), "val": range(_TRAIN, _TRAIN + _VAL), "trainval": range(_TRAIN + _VAL)}
    for number in numbers[part]:
        random = np.random.RandomState(number)
        high, wide = random.randint(60, 100, 2)
        y, x = np.mgrid[0:high, 0:wide]
        image = (128.0 + 60.0 * (y / high - 0.5))[..., None] + random.uniform(-20, 20, 3)
        label = np.zeros((high, wide), np.uint8)
        for _ in range(random.randint(1, 4)):
            kind, size = random.randint(1, _CLASSES), random.randint(8, 20)
            dy, dx = y - random.randint(high), x - random.randint(wide)
            far = np.hypot(dy, dx) if kind % 2 else np.maximum(abs(dy), abs(dx))
            label[far < size + 1.5] = _EDGE
            label[far < size] = kind
            image[far < size] = colours[kind]
        image += random.uniform(-25, 25, image.shape)
        yield image.clip(0, 255).astype(np.uint8), label
