"""MQ2007: documents found for 1,700 questions, each with 46 numbers about it and how well it answers, 0 to 2.

Source: T. Qin and T.-Y. Liu, Introducing LETOR 4.0 Datasets (2013). Fluid: paddle.dataset.mq2007. The file is a RAR
archive, which Python does not unpack: unpack it in the cache, so that ``MQ2007/MQ2007/Fold1/train.txt`` is there.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fluidnb.data.dataset import common, source
from fluidnb.data.dataset.bundled import Array
from fluidnb.errors import EnforceNotMet, OpValueError, near
from fluidnb.memory import flags

URL = "http://www.bigdatalab.ac.cn/benchmark/upload/download_source/7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar"
MD5 = "7be1640ae95c6408dab0ae7207bdc706"
_FILES = source.Files("mq2007", (URL, MD5), folder="MQ2007")
fetch = _FILES.fetch  # into the cache, where the archive has to be unpacked by hand
_FEATURES = 46
_TRAIN, _TEST = 1_017, 336  # questions of the first fold, also of the synthetic data
#: The documents of one question, the best first: its number, how well each answers [n], their features [n, 46].
Question = tuple[int, Array, Array]


def train(format: str = "pairwise", shuffle: bool = False, fill_missing: int = -1) -> Iterator[Any]:
    """The questions to train with. This is the reader itself: ``batch(mq2007.train, 8)``, ``mq2007.train("listwise")``.

    The synthetic ones are as many: how well a document answers follows from a weighted sum of its features, with noise.

    Args:
        format: what a sample is. ``pairwise``: (array [1], the better document, the other one); ``listwise``: (int64
            [n, 1] how well each document of a question answers, features [n, 46]), the best first; ``pointwise``: (how
            well it answers, features); ``plain_txt``: (number of the question, how well it answers, features).

    Yields:
        Samples; features are float64 [46]. Questions without any good document are left out.
    """
    return _samples("train", format)


def test(format: str = "pairwise", shuffle: bool = False, fill_missing: int = -1) -> Iterator[Any]:
    """The questions to test with, 336 of them."""
    return _samples("test", format)


def _pairs(question: Question) -> Iterator[Any]:
    _, scores, features = question
    for better, other in itertools.combinations(range(len(scores)), 2):
        if scores[better] > scores[other]:
            yield np.array([1]), features[better], features[other]


#: format -> the samples of a question
_FORMATS: dict[str, Callable[[Question], Iterator[Any]]] = {
    "pairwise": _pairs,
    "listwise": lambda q: iter([(q[1][:, None], q[2])]),
    "pointwise": lambda q: ((int(score), features) for score, features in zip(q[1], q[2], strict=True)),
    "plain_txt": lambda q: ((q[0], int(score), features) for score, features in zip(q[1], q[2], strict=True)),
}


def _samples(part: str, format: str) -> Iterator[Any]:
    if format not in _FORMATS:
        raise OpValueError(
            f"mq2007 has no format called {format!r}.", expected=", ".join(_FORMATS), received=format,
            hint=near(str(format), _FORMATS),
        )  # fmt: skip
    path = os.path.join(common.DATA_HOME, "MQ2007", "MQ2007", "Fold1", f"{part}.txt")
    if not os.path.exists(path):
        if flags.values["dataset_download"]:
            archive = common.download(URL, _FILES.folder, MD5)
            raise EnforceNotMet(
                f"{archive} is not unpacked.", expected=path,
                hint="Python does not read RAR archives: unpack it there with unrar or 7z, or use synthetic data: "
                "fluid.dataset.download(False).",
            )  # fmt: skip
        source.announce("mq2007")
        questions = _drawn(part)
    else:
        questions = _stored(path)
    return (sample for question in questions if question[1].any() for sample in _FORMATS[format](_ranked(question)))


def _ranked(question: Question) -> Question:
    number, scores, features = question
    order = np.argsort(-scores, kind="stable")
    return number, scores[order], features[order]


def _stored(path: str) -> Iterator[Question]:
    """Lines such as ``2 qid:10 1:0.03 2:0.0 … 46:0.1 #docid = …``, those of a question one after another."""
    with source.reading(path), open(path, encoding="utf-8") as file:
        rows = (line.partition("#")[0].split() for line in file)
        for number, lines in itertools.groupby((row for row in rows if row), key=lambda row: row[1]):
            documents = [(int(score), [float(pair.partition(":")[2]) for pair in pairs]) for score, _, *pairs in lines]
            if any(len(features) != _FEATURES for _, features in documents):
                raise ValueError(f"{number} has a line without {_FEATURES} features")
            scores, features = zip(*documents, strict=True)
            yield int(number.partition(":")[2]), np.array(scores, np.int64), np.array(features)


def _drawn(part: str) -> Iterator[Question]:
    """Synthetic questions, each with some 41 documents as the true ones."""
    weights = np.random.RandomState(46).normal(size=_FEATURES)
    for number in range(_TRAIN) if part == "train" else range(_TRAIN, _TRAIN + _TEST):
        random = np.random.RandomState(number)
        features = random.uniform(size=(random.randint(6, 77), _FEATURES)).round(6)
        quality = (features - 0.5) @ weights + random.normal(scale=0.3, size=len(features))
        yield number, np.digitize(quality, [0.5, 2.0]), features
