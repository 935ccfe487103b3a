"""Images in files: PPM and PGM, what Pillow reads, colours as OpenCV has them, batches of an archive."""

from __future__ import annotations

import io
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from fluidnb.data.dataset import image
from fluidnb.data.dataset.image_files import decode, to_ppm
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.extras import MissingPackage

RGB = np.random.RandomState(0).randint(0, 256, (4, 5, 3)).astype(np.uint8)


def stored(pixels: np.ndarray, kind: str, mode: str | None = None) -> bytes:
    """An image in a format of Pillow's."""
    pillow = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    picture = pillow.fromarray(pixels)
    if mode == "P":
        picture = pillow.fromarray(pixels, "L").convert("P")
        picture.putdata(pixels.ravel().tolist())
    picture.save(out, kind)
    return out.getvalue()


def test_ppm_there_and_back() -> None:
    assert (decode(to_ppm(RGB), "a") == RGB).all() and (decode(to_ppm(RGB[..., 0]), "a") == RGB[..., 0]).all()
    assert to_ppm(RGB).startswith(b"P6\n5 4\n255\n")
    with pytest.raises(EnforceNotMet, match=r"The image a\.ppm breaks off\.(.|\n)*60 bytes of pixels(.|\n)*57"):
        decode(to_ppm(RGB)[:-3], "a.ppm")


@pytest.mark.parametrize("encode", [to_ppm, lambda pixels: stored(pixels, "PNG")], ids=["PPM", "PNG"])
def test_colours_come_blue_first_and_grey_is_the_brightness(encode, tmp_path: Path) -> None:
    data = encode(RGB)
    assert (image.load_image_bytes(data) == RGB[..., ::-1]).all()
    grey = image.load_image_bytes(data, is_color=False)
    assert grey.dtype == np.uint8 and np.abs(grey - RGB @ [0.299, 0.587, 0.114]).max() <= 0.5 + 1e-9
    (tmp_path / "cat.img").write_bytes(data)
    assert (image.load_image(tmp_path / "cat.img", False) == grey).all()
    lone = encode(RGB[..., 0])
    assert (image.load_image_bytes(lone) == RGB[..., :1]).all() and image.load_image_bytes(lone, False).ndim == 2


def test_the_numbers_of_a_palette_stay_and_what_is_clear_goes() -> None:
    labels = np.array([[0, 1, 255], [20, 3, 0]], np.uint8)
    assert (decode(stored(labels, "PNG", "P"), "labels.png") == labels).all()
    clear = np.concatenate([RGB, np.full((4, 5, 1), 255, np.uint8)], 2)
    assert (decode(stored(clear, "PNG"), "clear.png") == RGB).all()


def test_load_and_transform_is_both(tmp_path: Path) -> None:
    (tmp_path / "cat.ppm").write_bytes(to_ppm(RGB))
    made = image.load_and_transform(str(tmp_path / "cat.ppm"), 6, 4, False, mean=[1, 2, 3])
    by_hand = image.simple_transform(RGB[..., ::-1], 6, 4, False, mean=[1, 2, 3])
    assert made.shape == (3, 4, 4) and made.dtype == np.float32 and (made == by_hand).all()


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnforceNotMet, match="cat.jpg cannot be read: No such file"):
        image.load_image(tmp_path / "cat.jpg")
    (tmp_path / "cat.jpg").write_bytes(b"no cat")
    pytest.importorskip("PIL")
    with pytest.raises(EnforceNotMet, match="cat.jpg cannot be read: cannot identify"):
        image.load_image(tmp_path / "cat.jpg")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingPackage, match=r"cat.jpg needs the package pillow(.|\n)*pip install 'fluidnb\[data\]'"):
        image.load_image(tmp_path / "cat.jpg")
    with pytest.raises(MissingPackage, match="in these bytes needs the package pillow"):
        image.load_image_bytes(b"no cat")


def test_an_archive_in_batches(tmp_path: Path, tar) -> None:
    names = [f"jpg/image_{i}.jpg" for i in range(5)]
    (tmp_path / "all.tgz").write_bytes(tar({name: name.encode() for name in names}))
    labels = {name: i for i, name in enumerate(names) if i != 1}
    path = str(tmp_path / "all.tgz")
    listing = image.batch_images_from_tar(path, "train", labels, num_per_batch=3)
    assert listing == str(tmp_path / "all.tgz_batch" / "train.txt")
    batches = [pickle.loads(Path(line).read_bytes()) for line in Path(listing).read_text().split()]
    assert [batch["label"] for batch in batches] == [[0, 2, 3], [4]]
    assert batches[1]["data"] == [b"jpg/image_4.jpg"]
    (tmp_path / "all.tgz").unlink()
    assert image.batch_images_from_tar(path, "train", {}) == listing  # it is there already
    with pytest.raises(OpValueError, match="cannot be the name of a folder"):
        image.batch_images_from_tar(path, "../train", {})
    with pytest.raises(OpValueError):
        image.batch_images_from_tar(path, "test", {}, num_per_batch=0)
