"""CIFAR: the pickled batches of both archives, pickles that want more than data, and the synthetic data."""

from __future__ import annotations

import io
import itertools
import os
import pickle
import struct
import tarfile

import numpy as np
import pytest

from fluidnb.data.dataset import cifar
from fluidnb.errors import EnforceNotMet
from fluidnb.files import plain_pickle
from tests.tools.refused import refused

IMAGES = np.random.RandomState(0).randint(0, 256, (4, 3072)).astype(np.uint8)


def text(value: bytes) -> bytes:
    """A text as Python 2 pickles it."""
    return b"U" + struct.pack("B", len(value)) + value


def batch(images: np.ndarray, labels: list[int], key: bytes = b"labels", dtype: bytes = b"u1") -> bytes:
    """A batch as Python 2 and its numpy wrote it: protocol 2, opcode by opcode."""
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85" + text(b"b") + b"tR(K\x01"
        b"K" + struct.pack("B", len(images)) + b"M" + struct.pack("<H", images.shape[1]) + b"\x86"
        b"cnumpy\ndtype\n(" + text(dtype) + b"K\x00K\x01tR(K\x03" + text(b"|") + b"NNN"
        b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + struct.pack("<i", images.nbytes) + images.tobytes() + b"tb"
    )
    numbers = b"](" + b"".join(b"K" + struct.pack("B", n) for n in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(key) + numbers + text(b"batch_label") + text(b"a batch") + b"u."


@pytest.fixture
def files(serve, tar) -> None:
    """Both archives."""
    ten = {
        "cifar-10-batches-py/batches.meta": b"no batch",
        "cifar-10-batches-py/data_batch_2": batch(IMAGES[2:3], [7]),
        "cifar-10-batches-py/data_batch_1": batch(IMAGES[:2], [5, 6]),
        "cifar-10-batches-py/test_batch": batch(IMAGES[3:], [9]),
    }
    hundred = {
        "cifar-100-python/meta": b"no batch",
        "cifar-100-python/test": batch(IMAGES[:1], [99], b"fine_labels"),
        "cifar-100-python/train": batch(IMAGES[1:], [0, 50, 98], b"fine_labels"),
    }
    serve(cifar, "CIFAR10_MD5", "cifar/cifar-10-python.tar.gz", tar(ten))
    serve(cifar, "CIFAR100_MD5", "cifar/cifar-100-python.tar.gz", tar(hundred))


def test_the_true_files(files: None) -> None:
    samples = list(cifar.train10()())
    assert [label for _, label in samples] == [7, 5, 6] and type(samples[0][1]) is int  # in the order of the archive
    assert all(x.dtype == np.float32 and x.shape == (3072,) for x, _ in samples)
    assert (np.stack([x for x, _ in samples]) == (IMAGES[[2, 0, 1]] / 255.0).astype("f4")).all()
    assert [label for _, label in cifar.test10()()] == [9]
    assert [label for _, label in cifar.train100()()] == [0, 50, 98]
    assert [label for _, label in cifar.test100()()] == [99]


def test_cycle_goes_round(files: None, mirror) -> None:
    assert [y for _, y in itertools.islice(cifar.train10(cycle=True)(), 7)] == [7, 5, 6, 7, 5, 6, 7]
    assert len(mirror.asked) == 1


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_what_python_3_pickles_is_read_too(protocol: int) -> None:
    value = {b"data": IMAGES, b"columns": np.asfortranarray(IMAGES), b"labels": [1, 2, 3, 4], b"name": b"\xff"}
    read = plain_pickle.loads(pickle.dumps(value, protocol), "x", encoding="bytes")
    assert (read[b"data"] == IMAGES).all() and (read[b"columns"] == IMAGES).all()
    assert read[b"name"] == b"\xff" and read[b"labels"] == [1, 2, 3, 4]


class Evil:
    """Runs a command where it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch evil",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_calls_something_is_refused(
    protocol: int, files: None, serve, tar, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = tar({"cifar-10-batches-py/test_batch": pickle.dumps({b"data": Evil()}, protocol)})
    serve(cifar, "CIFAR10_MD5", "cifar/cifar-10-python.tar.gz", data)
    with pytest.raises(EnforceNotMet, match=r"test_batch in .* is not plain data.* references (posix|os)\.system"):
        list(cifar.test10()())
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (batch(IMAGES, [1, 2, 3]), "no label for each of its 4 images"),
        (batch(IMAGES[:, :9], [1, 2, 3, 4]), "no array of rows of 3072 bytes"),
        (batch(IMAGES, [1, 2, 3, 4], b"coarse"), "no label for each"),
        (batch(IMAGES, [1, 2, 3, 4], dtype=b"O8"), "arrays of O8 are not plain numbers"),
        (batch(IMAGES, [1, 2, 3, 4], dtype=b"f4").replace(b"M\x00\x0c\x86", b"M\x01\x0c\x86"), "no valid state"),
        (batch(IMAGES, [1, 2, 3, 4])[:-40], "not plain data"),
        (pickle.dumps([1]), "it has a list, no dict"),
        (b"\x80\x02U\x01aQ.", "it refers to something outside"),
    ],
)
def test_other_content_is_named(files: None, serve, tar, data: bytes, message: str) -> None:
    serve(cifar, "CIFAR10_MD5", "cifar/cifar-10-python.tar.gz", tar({"x/test_batch": data}))
    with refused(EnforceNotMet, message):
        list(cifar.test10()())


def test_links_and_paths_out_of_the_archive_touch_nothing(files: None, serve, tmp_path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        link = tarfile.TarInfo("x/test_batch")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        entry = tarfile.TarInfo("../../escaped/test_batch")
        entry.size = len(batch(IMAGES[:1], [8]))
        archive.addfile(entry, io.BytesIO(batch(IMAGES[:1], [8])))
    serve(cifar, "CIFAR10_MD5", "cifar/cifar-10-python.tar.gz", out.getvalue())
    assert [y for _, y in cifar.test10()()] == [8]  # read in memory, the link passed over
    assert not list(tmp_path.rglob("escaped"))


def test_an_archive_without_batches_is_named(files: None, serve, tar) -> None:
    serve(cifar, "CIFAR10_MD5", "cifar/cifar-10-python.tar.gz", tar({"readme": b""}))
    with pytest.raises(EnforceNotMet, match="cifar-10-python.tar.gz cannot be read: it lacks the files"):
        list(cifar.train10()())


def test_the_stand_in_can_be_learnt() -> None:
    x, y = (np.stack(column) for column in zip(*itertools.islice(cifar.train10()(), 2000), strict=True))
    tx, ty = (np.stack(column) for column in zip(*itertools.islice(cifar.test10()(), 500), strict=True))
    assert (x.shape, tx.shape, x.dtype) == ((2000, 3072), (500, 3072), np.float32)
    assert 0 <= x.min() and x.max() <= 1 and set(y) == set(ty) == set(range(10))
    means = np.stack([x[y == k].mean(0) for k in range(10)])
    assert (((tx[:, None] - means) ** 2).sum(2).argmin(1) == ty).mean() > 0.9
    assert {label for _, label in itertools.islice(cifar.train100()(), 500)} == set(range(100))
    assert next(iter(cifar.train10(cycle=True)()))[0].tobytes() == x[0].tobytes()
