"""IMDB: reviews out of the archive, the numbering of their words, and the synthetic data."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from fluidnb.data.dataset import imdb
from fluidnb.errors import NotFound, OpValueError

REVIEWS = {
    "aclImdb/README": b"no review",
    "aclImdb/test/neg/0_2.txt": b"Bad, bad film!\n",
    "aclImdb/test/pos/0_10.txt": b"A good film.",
    "aclImdb/train/neg/0_3.txt": b"It's a BAD film<br />--caf\xc3\xa9 \xff\r\n",
    "aclImdb/train/pos/0_9.txt": b"good\xc2\xa0film; good!",
    "aclImdb/train/pos/1_7.txt": b" ...\n",
    "aclImdb/train/unsup/0_0.txt": b"good good good",
    "aclImdb/train/urls_pos.txt": b"good good good",
}


@pytest.fixture
def files(serve, tar) -> None:
    """Five reviews."""
    serve(imdb, "MD5", "imdb/aclImdb_v1.tar.gz", tar(REVIEWS))


def test_words_are_numbered_by_count(files: None) -> None:
    everything = re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$")
    assert imdb.build_dict(everything, 1) == {"bad": 0, "a": 1, "film": 2, "good": 3, "<unk>": 4}
    words = imdb.build_dict(everything, 0)
    by_count = [
        "bad",
        "film",
        "a",
        "good",
        "café",
        "filmbr",
        "good\N{NO-BREAK SPACE}film",
        "its",
        "\N{REPLACEMENT CHARACTER}",
    ]
    assert set(words) == {*by_count, "<unk>"} and words["<unk>"] == len(words) - 1 and words["bad"] == 0
    assert imdb.word_dict() == {"<unk>": 0}


def test_the_true_files(files: None, mirror) -> None:
    words = {"good": 1, "bad": 2, "film": 3, "<unk>": 0}
    read = imdb.train(words)
    assert list(read()) == list(read()) == [([0, 1], 0), ([], 0), ([0, 0, 2, 0, 0, 0], 1)]
    assert list(imdb.test(words)()) == [([0, 1, 3], 0), ([2, 2, 3], 1)]
    assert len(mirror.asked) == 1


def test_wrong_arguments(files: None) -> None:
    with pytest.raises(NotFound, match='word_idx has no "<unk>"'):
        imdb.train({})
    for pattern in (re.compile(b"bytes"), "text"):
        with pytest.raises(OpValueError, match="pattern should be a compiled regular expression for text"):
            imdb.build_dict(pattern, 1)


def test_the_stand_in_can_be_learnt() -> None:
    words = imdb.word_dict()
    assert {"wonderful", "awful", "the"} <= set(words)
    samples, unseen = (
        [*itertools.islice(part(words)(), n), *itertools.islice(part(words)(), 12_500, 12_500 + n)]
        for part, n in ((imdb.train, 250), (imdb.test, 50))
    )
    assert [sum(label == k for _, label in samples) for k in (0, 1)] == [250, 250]
    assert all(0 <= i < len(words) for review, _ in samples for i in review)
    score = np.zeros(len(words))
    for review, label in samples:
        np.add.at(score, review, (1 - 2 * label) / len(review))
    right = sum((score[review].mean() < 0) == label for review, label in unseen)
    assert 80 <= right <= 100
