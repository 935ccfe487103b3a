"""Images in files: the plain formats PPM and PGM are read here, all others by Pillow where it is installed.

Source: paddle.dataset.image, which has OpenCV read images; colours come as there, blue first.
"""

import io
import os
import pickle
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import Array
from fluidnb.data.reader.decorators import batch, check_count
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.extras import require
from fluidnb.files.atomic_write import atomic_write

_PLAIN = re.compile(rb"(P[56])\s+(\d+)\s+(\d+)\s+255\s")  # PGM and PPM without comments, a byte a value
_GREY = np.array([0.114, 0.587, 0.299])  # how bright blue, green and red are


def to_ppm(image: ArrayLike) -> bytes:
    """An image as the bytes of a PPM file, or of a PGM file where it has no colour."""
    array = np.asarray(image, np.uint8)
    kind = "P6" if array.ndim == 3 else "P5"
    return f"{kind}\n{array.shape[1]} {array.shape[0]}\n255\n".encode() + array.tobytes()


def decode(data: bytes, what: str) -> Array:
    """The pixels of an image file as they are stored: numbers of a palette stay numbers.

    Returns:
        uint8 (height, width, 3) with red, green and blue, or (height, width).
    """
    head = _PLAIN.match(data)
    if head is not None:
        wide, high, colours = int(head[2]), int(head[3]), 3 if head[1] == b"P6" else 1
        if len(data) - head.end() < wide * high * colours:
            raise EnforceNotMet(
                f"The image {what} breaks off.", expected=f"{wide * high * colours} bytes of pixels",
                received=f"{len(data) - head.end()}",
            )  # fmt: skip
        pixels = np.frombuffer(data, np.uint8, wide * high * colours, head.end())
        return pixels.reshape((high, wide, 3) if colours == 3 else (high, wide)).copy()
    pillow = require("PIL.Image", f"The image {what}")
    try:
        with pillow.open(io.BytesIO(data)) as opened:
            image = opened if opened.mode in ("L", "P", "RGB") else opened.convert("RGB")
            return np.array(image, np.uint8)
    except (pillow.UnidentifiedImageError, OSError, SyntaxError, ValueError) as e:
        raise EnforceNotMet(f"The image {what} cannot be read: {e}.") from e


def load_image_bytes(bytes: bytes, is_color: bool = True) -> Array:
    """An image from the bytes of its file.

    Args:
        bytes: JPEG, PNG and so on, for which Pillow has to be installed; or PPM or PGM.
        is_color: whether to give three channels, or one number a pixel, its brightness.

    Returns:
        uint8 (height, width, 3) with blue, green and red as OpenCV has them; or (height, width).

    Raises:
        EnforceNotMet: no image, or Pillow is not installed.

    Example:
        >>> data = to_ppm([[[255, 128, 0]]])
        >>> load_image_bytes(data).tolist(), load_image_bytes(data, is_color=False).tolist()
        ([[[0, 128, 255]]], [[151]])
    """
    return _loaded(bytes, "in these bytes", is_color)


def load_image(file: str | os.PathLike[str], is_color: bool = True) -> Array:
    """An image from its file.

    Raises:
        EnforceNotMet: there is no such file, it is no image, or Pillow is not installed.

    Example:
        >>> load_image("/no/such/cat.jpg")
        Traceback (most recent call last):
        fluidnb.errors.EnforceNotMet: The image /no/such/cat.jpg cannot be read: No such file or directory.
    """
    try:
        with open(file, "rb") as opened:
            data = opened.read()
    except OSError as e:
        raise EnforceNotMet(f"The image {os.fspath(file)} cannot be read: {e.strerror}.") from None
    return _loaded(data, os.fspath(file), is_color)


def _loaded(data: bytes, what: str, is_color: bool) -> Array:
    pixels = decode(data, what)
    if pixels.ndim == 2 and is_color:
        return np.repeat(pixels[..., None], 3, 2)
    if pixels.ndim == 2:
        return pixels
    pixels = np.ascontiguousarray(pixels[..., ::-1])
    return pixels if is_color else np.rint(pixels @ _GREY).astype(np.uint8)


def batch_images_from_tar(
    data_file: str, dataset_name: str, img2label: Mapping[str, Any], num_per_batch: int = 1024
) -> str:
    """Write the images of a tar archive and their labels into pickled batches, in the folder ``<data_file>_batch``.

    Args:
        dataset_name: the name of the batches, for example ``train``.
        img2label: the file names of the images that are wanted, each with its label.
        num_per_batch: images a batch; the last one may have fewer.

    Returns:
        The path of a text file with the path of a batch in each line. A batch is a dict: ``data``, the bytes of the
        image files, and ``label``. What was written before is not written again.

    Raises:
        EnforceNotMet: no whole archive, or none of the images is in it.
    """
    check_count("num_per_batch", num_per_batch)
    if os.path.basename(dataset_name) != dataset_name or dataset_name in ("", ".", ".."):
        raise OpValueError(f'"{dataset_name}" cannot be the name of a folder.')
    folder = os.path.abspath(os.path.join(f"{data_file}_batch", dataset_name))
    listing = f"{folder}.txt"
    if os.path.exists(listing):
        return listing
    paths: list[str] = []
    for files in batch(lambda: source.contents(data_file, img2label.__contains__), num_per_batch)():
        paths.append(os.path.join(folder, f"batch_{len(paths)}"))
        content = {"label": [img2label[name] for name, _ in files], "data": [data for _, data in files]}
        with atomic_write(paths[-1], parents=True) as file:
            pickle.dump(content, file, protocol=2)
    with atomic_write(listing, parents=True) as file:
        file.write("".join(path + "\n" for path in paths).encode())
    return listing
