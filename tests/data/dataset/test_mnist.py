"""MNIST: the IDX files, what is wrong with damaged ones, and the synthetic digits."""

from __future__ import annotations

import gzip
import itertools
import struct

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.data import reader, seeding
from fluidnb.data.dataset import mnist
from fluidnb.errors import EnforceNotMet

IMAGES = np.random.RandomState(0).randint(0, 256, (6, 28, 28)).astype(np.uint8)
LABELS = np.array([3, 1, 4, 1, 5, 9], np.uint8)


def idx(array: np.ndarray) -> bytes:
    """An IDX file."""
    head = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
    return gzip.compress(head + array.tobytes(), mtime=0)


@pytest.fixture
def files(serve) -> None:
    """Six images to train, two to test."""
    serve(mnist, "TRAIN_IMAGE_MD5", "mnist/train-images-idx3-ubyte.gz", idx(IMAGES))
    serve(mnist, "TRAIN_LABEL_MD5", "mnist/train-labels-idx1-ubyte.gz", idx(LABELS))
    serve(mnist, "TEST_IMAGE_MD5", "mnist/t10k-images-idx3-ubyte.gz", idx(IMAGES[:2]))
    serve(mnist, "TEST_LABEL_MD5", "mnist/t10k-labels-idx1-ubyte.gz", idx(LABELS[:2]))


def test_the_true_files(files: None, capsys: pytest.CaptureFixture[str]) -> None:
    samples = list(mnist.train()())
    assert [label for _, label in samples] == [3, 1, 4, 1, 5, 9] and type(samples[0][1]) is int
    x = np.stack([image for image, _ in samples])
    assert x.dtype == np.float32 and x.shape == (6, 784)
    assert (x == IMAGES.reshape(6, 784).astype("f4") / 255.0 * 2.0 - 1.0).all()
    assert len(list(mnist.test()())) == 2
    assert "synthetic" not in capsys.readouterr().err


def test_fetch_gets_all_four(files: None, cache) -> None:
    mnist.fetch()
    assert len(list((cache / "mnist").iterdir())) == 4


@pytest.mark.parametrize(
    ("constant", "name", "data", "message"),
    [
        ("TRAIN_IMAGE_MD5", "train-images-idx3-ubyte.gz", idx(LABELS), "its magic number is 2049, not 2051"),
        ("TRAIN_IMAGE_MD5", "train-images-idx3-ubyte.gz", idx(IMAGES[:5]), "it has 6 labels for 5 images"),
        ("TRAIN_LABEL_MD5", "train-labels-idx1-ubyte.gz", b"no gzip", "train-labels.* cannot be read: Not a gzipped"),
        ("TRAIN_LABEL_MD5", "train-labels-idx1-ubyte.gz", idx(LABELS)[:-9], "train-labels.* cannot be read"),
        ("TRAIN_LABEL_MD5", "train-labels-idx1-ubyte.gz", gzip.compress(b"\0\0"), "cannot be read: unpack_from"),
        (
            "TRAIN_LABEL_MD5",
            "train-labels-idx1-ubyte.gz",
            gzip.compress(gzip.decompress(idx(LABELS))[:-1]),
            r"it has 5 values for the sizes \(6,\)",
        ),
    ],
    ids=["labels as images", "one image less", "no gzip", "cut gzip", "no sizes", "cut content"],
)
def test_a_file_of_another_kind_is_named(files: None, serve, constant: str, name: str, data: bytes, message: str):
    serve(mnist, constant, f"mnist/{name}", data)
    with pytest.raises(EnforceNotMet, match=message):
        list(mnist.train()())


def test_the_stand_in_shows_digits() -> None:
    x, y = (np.stack(column) for column in zip(*itertools.islice(mnist.train()(), 6000), strict=True))
    tx, ty = (np.stack(column) for column in zip(*itertools.islice(mnist.test()(), 1000), strict=True))
    assert (x.shape, tx.shape, x.dtype) == ((6000, 784), (1000, 784), np.float32)
    assert -1 <= x.min() < -0.9 and 0.9 < x.max() <= 1
    assert np.bincount(y).min() > 500 and not {i.tobytes() for i in x} & {i.tobytes() for i in tx}
    w, *_ = np.linalg.lstsq(np.c_[x, np.ones(len(x))][:2500], np.eye(10)[y[:2500]], rcond=None)
    assert 0.5 < ((np.c_[tx, np.ones(len(tx))] @ w).argmax(1) == ty).mean() < 0.999  # learnt, not given away


def test_batches_feed_a_program() -> None:
    seeding.seed(3)
    batch = next(iter(fluid.batch(reader.shuffle(mnist.train(), 500), 64)()))
    seeding.seed(None)
    image, label = fluid.layers.data("image", [1, 28, 28]), fluid.layers.data("label", [1], dtype="int64")
    fed = fluid.DataFeeder([image, label], fluid.CPUPlace()).feed([(x.reshape(1, 28, 28), y) for x, y in batch])
    assert np.array(fed["image"]).shape == (64, 1, 28, 28) and np.array(fed["label"]).shape == (64, 1)
