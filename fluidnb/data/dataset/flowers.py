"""Flowers: photographs of flowers of 102 kinds, 6,149 to train, 1,020 to test and 1,020 to validate.

Source: M.-E. Nilsback and A. Zisserman, Automated Flower Classification over a Large Number of Classes (2008). The
files are a tar archive of JPEGs and two tables of MATLAB; Pillow and SciPy have to be installed to read them. Fluid:
paddle.dataset.flowers, which trains with the larger part, called ``tstid`` in the tables.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import Array
from fluidnb.data.dataset.image import simple_transform
from fluidnb.data.dataset.image_files import load_image_bytes, to_ppm
from fluidnb.data.reader.decorators import Reader, map_readers
from fluidnb.data.reader.threads import xmap_readers
from fluidnb.extras import require

DATA_URL = "http://paddlemodels.bj.bcebos.com/flowers/102flowers.tgz"
LABEL_URL = "http://paddlemodels.bj.bcebos.com/flowers/imagelabels.mat"
SETID_URL = "http://paddlemodels.bj.bcebos.com/flowers/setid.mat"
DATA_MD5 = "52808999861908f626f3c1f4e79d11fa"
LABEL_MD5 = "e0620be6f572b9609742df49c70aed4d"
SETID_MD5 = "a5357ecc9cb78c4bef273ce3793fc85c"
_FILES = source.Files("flowers", (DATA_URL, DATA_MD5), (LABEL_URL, LABEL_MD5), (SETID_URL, SETID_MD5))
fetch = _FILES.fetch
_CLASSES = 102
#: part -> the number of images, also of the synthetic ones
_DRAWN = {"tstid": 6_149, "trnid": 1_020, "valid": 1_020}
_MEAN = (103.94, 116.78, 123.68)  # of blue, green and red
Mapper = Callable[[Any], Any]


def default_mapper(is_train: bool, sample: tuple[bytes, int]) -> tuple[Array, int]:
    """Default preprocessing of an image: scaled to 256, cropped to 224, channels first, mean subtracted, flat.

    Args:
        sample: (the bytes of the file, the class).

    Returns:
        (float32 [150,528]: blues row by row, greens, reds; the class).

    Example:
        >>> values, label = default_mapper(False, (to_ppm(np.zeros((30, 40, 3))), 7))
        >>> values.shape, values.dtype, round(float(values[0]), 2), label
        ((150528,), dtype('float32'), -103.94, 7)
    """
    data, label = sample
    return simple_transform(load_image_bytes(data), 256, 224, is_train, mean=_MEAN).ravel(), label


train_mapper = functools.partial(default_mapper, True)
test_mapper = functools.partial(default_mapper, False)


def train(
    mapper: Mapper = train_mapper, buffered_size: int = 1024, use_xmap: bool = True, cycle: bool = False
) -> Reader:
    """The images to train with: (150,528 values as float32, class from 0 to 101), as `default_mapper` makes them.

    The synthetic ones are as many: petals around a middle, in the colours and the number of each class.

    Args:
        mapper: takes (the bytes of an image file, class) and gives the sample.
        buffered_size: with `use_xmap`, how many samples are under way or ready at most.
        use_xmap: whether threads map; samples come in any order then. CPU_NUM in the environment says how many threads.
    """
    return _reader("tstid", mapper, buffered_size, use_xmap, cycle)


def test(mapper: Mapper = test_mapper, buffered_size: int = 1024, use_xmap: bool = True, cycle: bool = False) -> Reader:
    """The images to test with, 1,020 of them; samples as in `train`."""
    return _reader("trnid", mapper, buffered_size, use_xmap, cycle)


def valid(mapper: Mapper = test_mapper, buffered_size: int = 1024, use_xmap: bool = True) -> Reader:
    """The images to validate with, 1,020 of them; samples as in `train`."""
    return _reader("valid", mapper, buffered_size, use_xmap, False)


def _reader(part: str, mapper: Mapper, size: int, use_xmap: bool, cycle: bool) -> Reader:
    paths = _FILES.paths()

    def samples() -> Iterator[tuple[bytes, int]]:
        while True:
            yield from _drawn(part) if paths is None else _stored(paths, part)
            if not cycle:
                return

    if not use_xmap:
        return map_readers(mapper, samples)
    return xmap_readers(mapper, samples, int(os.environ.get("CPU_NUM", os.cpu_count() or 1)), size)


def _stored(paths: tuple[str, ...], part: str) -> Iterator[tuple[bytes, int]]:
    data, *tables = paths
    labels, chosen = (_table(path, name) for path, name in zip(tables, ("labels", part), strict=True))
    wanted = {f"jpg/image_{i:05d}.jpg": int(labels[i - 1]) - 1 for i in chosen}
    for name, image in source.contents(data, wanted.__contains__):
        yield image, wanted[name]


def _table(path: str, name: str) -> Array:
    loadmat = require("scipy.io", f"The file {path}").loadmat
    with source.reading(path, name):
        table: Array = np.ravel(loadmat(path)[name])
        return table


def _drawn(part: str) -> Iterator[tuple[bytes, int]]:
    """Synthetic image files of 256 x 256 pixels: flowers on a grid of 32 x 32 cells, with noise."""
    colours = np.random.RandomState(102).randint(60, 256, (_CLASSES, 3, 3))  # of petals, middle and ground
    for number in range(_DRAWN[part]):
        random = np.random.RandomState([list(_DRAWN).index(part), number])
        label = (number * 53 + number // _CLASSES) % _CLASSES  # every class in every 102 images
        y, x = np.mgrid[0:32, 0:32] - random.uniform(13, 19, (2, 1, 1))
        far, angle = np.hypot(x, y), np.arctan2(y, x) + random.uniform(0, 6.3)
        petals, middle = 8 + 5 * np.cos((3 + label % 6) * angle), 3 + label % 3
        what = np.where(far < middle, 1, np.where(far < petals, 0, 2))
        image = colours[label][what] + random.uniform(-40, 40, (32, 32, 1))
        yield to_ppm(image.clip(0, 255).astype(np.uint8).repeat(8, 0).repeat(8, 1)), label
