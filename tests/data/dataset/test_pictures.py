"""Flowers and VOC2012: their archives, mappers, what is missing or damaged, and the synthetic data."""

from __future__ import annotations

import io
import itertools
import sys

import numpy as np
import pytest

from fluidnb.data import seeding
from fluidnb.data.dataset import flowers, voc2012
from fluidnb.data.dataset.image_files import decode, to_ppm
from fluidnb.errors import EnforceNotMet
from fluidnb.extras import MissingPackage

#: Images that Pillow is not needed for; a file's name says nothing about its format.
IMAGES = {f"jpg/image_{i:05d}.jpg": to_ppm(np.full((20, 30, 3), 10 * i)) for i in range(1, 5)}


def table(**columns: list[int]) -> bytes:
    """A file of MATLAB."""
    scipy = pytest.importorskip("scipy.io")
    out = io.BytesIO()
    scipy.savemat(out, {name: [column] for name, column in columns.items()})
    return out.getvalue()


@pytest.fixture
def garden(serve, tar) -> None:
    """The three files of flowers."""
    serve(flowers, "DATA_MD5", "flowers/102flowers.tgz", tar(IMAGES))
    serve(flowers, "LABEL_MD5", "flowers/imagelabels.mat", table(labels=[5, 102, 1, 7]))
    serve(flowers, "SETID_MD5", "flowers/setid.mat", table(tstid=[1, 4], trnid=[2], valid=[3]))


@pytest.mark.usefixtures("garden")
def test_flowers_come_from_their_files() -> None:
    def plain(sample: tuple[bytes, int]) -> tuple[int, int]:
        return int(decode(sample[0], "flower")[0, 0, 0]), sample[1]

    assert list(flowers.train(plain, use_xmap=False)()) == [(10, 4), (40, 6)]
    assert sorted(flowers.train(plain)()) == [(10, 4), (40, 6)]
    assert list(flowers.test(mapper=plain)()) == [(20, 101)] and list(flowers.valid(plain)()) == [(30, 0)]
    again = flowers.test(plain, use_xmap=False, cycle=True)()
    assert [next(again) for _ in range(3)] == [(20, 101)] * 3
    values, label = next(iter(flowers.test()()))
    means = values.reshape(3, -1).mean(1)
    assert label == 101 and np.allclose(means, np.array([20, 20, 20]) - [103.94, 116.78, 123.68], atol=1e-3)


@pytest.mark.usefixtures("garden")
def test_flowers_need_scipy_and_whole_files(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    flowers.fetch()
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(MissingPackage, match=r"imagelabels.mat needs the package scipy(.|\n)*'fluidnb\[data\]'"):
        list(flowers.train(use_xmap=False)())
    monkeypatch.undo()


def test_a_broken_table_is_named(serve, tar) -> None:
    pytest.importorskip("scipy.io")
    serve(flowers, "DATA_MD5", "flowers/102flowers.tgz", tar(IMAGES))
    serve(flowers, "LABEL_MD5", "flowers/imagelabels.mat", table(other=[1]))
    serve(flowers, "SETID_MD5", "flowers/setid.mat", table(tstid=[1]))
    with pytest.raises(EnforceNotMet, match="labels of .*imagelabels.mat cannot be read: labels"):
        list(flowers.train(use_xmap=False)())


def test_the_stand_in_has_every_flower_and_threads_lose_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPU_NUM", "2")
    labels = [label for _, label in flowers.valid(mapper=lambda sample: sample)()]
    assert sorted(labels) == sorted([*range(102)] * 10)
    seeding.seed(3)
    (one, two), (label, other) = zip(*(next(iter(flowers.train(use_xmap=False)())) for _ in range(2)), strict=True)
    seeding.seed(None)
    assert label == other and not (one == two).all()  # another crop
    still = [next(iter(flowers.test(use_xmap=False)()))[0] for _ in range(2)]
    assert (still[0] == still[1]).all() and still[0].dtype == np.float32 and still[0].shape == (150528,)


def devkit(name: str) -> dict[str, bytes]:
    """The files of two images in VOC's archive."""
    root, files = "VOCdevkit/VOC2012", {}
    for i, (part, names) in enumerate({"trainval": "a b", "train": "b", "val": name}.items()):
        files[f"{root}/ImageSets/Segmentation/{part}.txt"] = "\n".join([*names.split(), ""]).encode()
        if part != "val":
            letter = "ab"[i]
            files[f"{root}/JPEGImages/{letter}.jpg"] = to_ppm(np.full((2, 3, 3), [50 + i, 0, 9]))
            files[f"{root}/SegmentationClass/{letter}.png"] = to_ppm([[0, 255, 20 - i], [0, 0, 0]])
    return files


def test_voc_comes_from_its_file(serve, tar) -> None:
    serve(voc2012, "VOC_MD5", "voc2012/VOCtrainval_11-May-2012.tar", tar(devkit("a")))
    (image, label), (_, other) = voc2012.train()()
    assert image[0, 0].tolist() == [50, 0, 9] and label[0].tolist() == [0, 255, 20] and other[0, 2] == 19
    assert [int(image[0, 0, 0]) for image, _ in voc2012.test()()] == [51]
    assert [int(image[0, 0, 0]) for image, _ in voc2012.val()()] == [50]


def test_what_lacks_in_vocs_file_is_named(serve, tar) -> None:
    serve(voc2012, "VOC_MD5", "voc2012/VOCtrainval_11-May-2012.tar", tar(devkit("nobody")))
    with pytest.raises(EnforceNotMet, match="VOCtrainval_11-May-2012.tar cannot be read: .*nobody.jpg.* not found"):
        list(voc2012.val()())


def test_vocs_stand_in_is_split_as_the_real_one() -> None:
    counts = [sum(1 for _ in read()) for read in (voc2012.train(), voc2012.test(), voc2012.val())]
    assert counts == [2_913, 1_464, 1_449]
    whole = [*itertools.islice(voc2012.train()(), 20), *itertools.islice(voc2012.train()(), 1_464, 1_484)]
    part, rest = (list(itertools.islice(read(), 20)) for read in (voc2012.test(), voc2012.val()))
    for one, two in zip(whole, part + rest, strict=True):
        assert all((a == b).all() for a, b in zip(one, two, strict=True))
    kinds = np.unique(np.concatenate([label.ravel() for _, label in whole]))
    assert {0, 255} <= set(kinds.tolist()) <= {*range(21), 255} and len(kinds) > 15
