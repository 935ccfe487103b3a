"""Broken archives of data sets: what is packed is changed before it is packed, or the packed bytes are."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import random
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fluidnb as fluid
from fluidnb.data.dataset import (
    cifar,
    common,
    conll05,
    imdb,
    imikolov,
    mnist,
    movielens,
    mq2007,
    sentiment,
    uci_housing,
    voc2012,
    wmt14,
    wmt16,
)
from tests.data.dataset import (
    test_cifar,
    test_conll05,
    test_imdb,
    test_imikolov,
    test_mnist,
    test_movielens,
    test_mq2007,
    test_pictures,
    test_sentiment,
    test_uci_housing,
    test_wmt,
)
from tests.fuzz import files
from tests.fuzz.oracle import RESULT, Outcome, judge

#: Bytes that reading a broken archive may take: the valid ones take less than half of it.
CASE_BYTES = 64 << 20

#: Samples of a reader that are read: all of an archive's, few of a stand-in's, which has up to a million.
MOST = 2_000

Parts = dict[str, bytes]
Pack = Callable[[Parts], bytes]


def tar(parts: Parts) -> bytes:
    """A gzipped tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for name, data in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def packed(parts: Parts) -> bytes:
    """A zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def gzipped(parts: Parts) -> bytes:
    """One file, compressed."""
    return gzip.compress(next(iter(parts.values())), 1, mtime=0)


def plain(parts: Parts) -> bytes:
    """One file as it is."""
    return next(iter(parts.values()))


def _text(parts: dict[str, str], prefix: str = "") -> Parts:
    return {prefix + name: text.encode("latin-1", "replace") for name, text in parts.items()}


def _all(*readers: Callable[[], Any]) -> None:
    for reader in readers:
        for _ in itertools.islice(reader() if callable(reader) else reader, MOST):
            pass


def _mnist() -> dict[str, tuple[Pack, Parts]]:
    rows = {"train-images-idx3": test_mnist.IMAGES, "train-labels-idx1": test_mnist.LABELS,
            "t10k-images-idx3": test_mnist.IMAGES[:2], "t10k-labels-idx1": test_mnist.LABELS[:2]}  # fmt: skip
    return {f"mnist/{n}-ubyte.gz": (gzipped, {n: gzip.decompress(test_mnist.idx(a))}) for n, a in rows.items()}


def _cifar() -> dict[str, tuple[Pack, Parts]]:
    images = test_cifar.IMAGES
    ten = {f"cifar-10-batches-py/data_batch_{i}": test_cifar.batch(images[i : i + 1], [i]) for i in range(2)}
    return {"cifar/cifar-10-python.tar.gz": (tar, ten)}


def _conll05() -> dict[str, tuple[Pack, Parts]]:
    texts = zip(test_conll05.FILES, (test_conll05.WORDS, test_conll05.PROPS), strict=True)
    return {
        "conll05st/conll05st-tests.tar.gz": (tar, {n: gzip.compress(t.encode(), mtime=0) for n, t in texts}),
        "conll05st/wordDict.txt": (plain, {"d": b"unknown\nbos\neos\nThe\ncat\nsaw\nate\nit\n"}),
        "conll05st/verbDict.txt": (plain, {"d": b"eat\nsee\ngo\n"}),
        "conll05st/targetDict.txt": (plain, {"d": b"B-V\nB-A0\nI-A0\nB-A1\nI-V\nO\n"}),
        "conll05st/emb": (plain, {"d": b"h" * 16 + bytes(8 * 32 * 4)}),
    }


def _wmt14() -> dict[str, tuple[Pack, Parts]]:
    texts = {"train/train": test_wmt.PAIRS14, "src.dict": "\n".join(test_wmt.SRC) + "\n", "test/test": "sat\tchat\n",
             "gen/gen": "cat\tchat\n", "trg.dict": "\n".join(test_wmt.TRG) + "\n"}  # fmt: skip
    return {"wmt14/wmt14.tgz": (tar, _text(texts, "wmt14/"))}


def _mq2007() -> dict[str, tuple[Pack, Parts]]:
    rows = "".join(test_mq2007.line(i % 3, 10 + i // 2, 0.1 * i) for i in range(6))
    return {"MQ2007/MQ2007/Fold1/train.txt": (plain, {"t": rows.encode()})}


#: data set -> its files in the cache, and what reads them
SETS: dict[str, tuple[Callable[[], dict[str, tuple[Pack, Parts]]], Callable[[], None]]] = {
    "mnist": (_mnist, lambda: _all(mnist.train(), mnist.test())),
    "cifar": (_cifar, lambda: _all(cifar.train10())),
    "conll05": (_conll05, lambda: (conll05.get_dict(), conll05.get_embedding(), _all(conll05.test()))[2]),
    "imdb": (lambda: {"imdb/aclImdb_v1.tar.gz": (tar, test_imdb.REVIEWS)},
             lambda: _all(imdb.train(imdb.word_dict()), imdb.test({"<unk>": 0}))),
    "imikolov": (lambda: {"imikolov/simple-examples.tgz": (tar, {
        "./simple-examples/data/ptb.train.txt": test_imikolov.TRAIN,
        "./simple-examples/data/ptb.valid.txt": test_imikolov.VALID})},
        lambda: _all(imikolov.train(imikolov.build_dict(0), 2), imikolov.test(imikolov.build_dict(0), 2))),
    "movielens": (lambda: {"movielens/ml-1m.zip": (packed, _text(test_movielens.TABLES, "ml-1m/"))},
                  lambda: _all(movielens.train(), movielens.test())),
    "mq2007": (_mq2007, lambda: _all(mq2007.train, lambda: mq2007.train(format="listwise"))),
    "sentiment": (lambda: {"corpora/movie_reviews.zip": (packed, _text(test_sentiment.REVIEWS))},
                  lambda: _all(sentiment.train(), sentiment.test())),
    "uci_housing": (lambda: {"uci_housing/housing.data": (plain, {"t": test_uci_housing.written(
        test_uci_housing.TABLE)})}, lambda: _all(uci_housing.train(), uci_housing.test())),
    "voc2012": (lambda: {"voc2012/VOCtrainval_11-May-2012.tar": (tar, test_pictures.devkit("a"))},
                lambda: _all(voc2012.train())),
    "wmt14": (_wmt14, lambda: _all(wmt14.train(30), wmt14.test(30))),
    "wmt16": (lambda: {"wmt16/wmt16.tar.gz": (tar, {n: t.encode() for n, t in {
        "wmt16/train": test_wmt.PAIRS16, "wmt16/test": "cat\tKatze\n", "wmt16/val": "a a\tHund eine\n"}.items()})},
        lambda: _all(wmt16.train(30, 30), wmt16.validation(30, 30))),
}  # fmt: skip


def case(dice: random.Random) -> dict[str, Any]:
    """A data set, which of its files and which part of it, and the edits."""
    kind = dice.choice(sorted(SETS))
    return {"kind": kind, "file": dice.random(), "part": dice.choice([None, dice.random(), dice.random()]),
            "edits": files.case(dice)["edits"]}  # fmt: skip


def run(one: dict[str, Any]) -> Outcome:
    """Put the files into an empty cache and read them."""
    make, read = SETS[one["kind"]]
    home, right = common.DATA_HOME, common._is_right
    for module in (conll05, imdb, imikolov, movielens, wmt14, wmt16, sentiment, uci_housing):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        rows = make()
        broken = sorted(rows)[int(one["file"] * len(rows))]
        for name, (pack, parts) in rows.items():
            if name == broken and one["part"] is not None:
                part = sorted(parts)[int(one["part"] * len(parts))]
                parts = parts | {part: files.broken(parts[part], one["edits"])}
            data = pack(parts)
            if name == broken and one["part"] is None:
                data = files.broken(data, one["edits"])
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        common.DATA_HOME, common._is_right = folder, lambda path, checksum: True
        try:
            with contextlib.redirect_stderr(io.StringIO()), fluid.fresh():
                read()
        except BaseException as error:
            return judge(error, own=(__file__,))
        finally:
            common.DATA_HOME, common._is_right = home, right
    return Outcome(RESULT)


smaller = files.smaller


def show(one: dict[str, Any]) -> str:
    """Python code that runs the case again."""
    return f"from tests.fuzz import archives\nprint(archives.run({one!r}))"
