"""The Penn Treebank: its archive, the numbering of words, n-grams and sentences, and the synthetic data."""

from __future__ import annotations

import itertools

import pytest

import fluidnb as fluid
from fluidnb.data import reader
from fluidnb.data.dataset import imikolov
from fluidnb.data.dataset.imikolov import DataType
from fluidnb.errors import EnforceNotMet, NotFound, OpValueError
from tests.tools.refused import refused

TRAIN = b" the cat sat \n the <unk> sat on the mat \n"
VALID = b" the dog sat \n"


@pytest.fixture
def files(serve, tar) -> None:
    """Three sentences."""
    names = {"./simple-examples/data/ptb.train.txt": TRAIN, "./simple-examples/data/ptb.valid.txt": VALID}
    names["./simple-examples/data/ptb.test.txt"] = b"never read\n"
    serve(imikolov, "MD5", "imikolov/simple-examples.tgz", tar(names))


def test_build_dict(files: None) -> None:
    by_count = {"the": 0, "<e>": 1, "<s>": 2, "sat": 3}  # 4, then 3 each, equal ones by name
    assert imikolov.build_dict(min_word_freq=1) == {**by_count, "<unk>": 4}
    every = ["the", "<e>", "<s>", "sat", "cat", "dog", "mat", "on", "<unk>"]
    assert list(imikolov.build_dict(0).items()) == [(word, i) for i, word in enumerate(every)]
    assert imikolov.build_dict() == {"<unk>": 0}


def test_n_grams(files: None) -> None:
    words = imikolov.build_dict(0)
    names = {i: word for word, i in words.items()}
    grams = [" ".join(names[i] for i in sample) for sample in imikolov.train(words, 4)()]
    assert grams == [
        "<s> the cat sat", "the cat sat <e>",
        "<s> the <unk> sat", "the <unk> sat on", "<unk> sat on the", "sat on the mat", "on the mat <e>",
    ]  # fmt: skip
    assert all(type(sample) is tuple for sample in imikolov.train(words, 4)())
    assert len(list(imikolov.train(words, 6)())) == 3  # the first sentence is too short
    assert list(imikolov.test({"<unk>": 7}, 5)()) == [(7,) * 5]


def test_sentences(files: None) -> None:
    words = imikolov.build_dict(0)
    s, e, the, cat, sat = (words[w] for w in ("<s>", "<e>", "the", "cat", "sat"))
    assert next(iter(imikolov.train(words, 0, DataType.SEQ)())) == ([s, the, cat, sat], [the, cat, sat, e])
    assert [len(src) for src, _ in imikolov.train(words, 0, DataType.SEQ)()] == [4, 7]
    assert [len(src) for src, _ in imikolov.train(words, 4, DataType.SEQ)()] == [4]
    assert [len(src) for src, _ in imikolov.train(words, 3, DataType.SEQ)()] == []


@pytest.mark.parametrize(
    ("words", "n", "kind", "error", "message"),
    [
        ({"<unk>": 0}, 5, 3, OpValueError, "Unknown data type"),
        ({"<unk>": 0}, -1, DataType.NGRAM, OpValueError, "Invalid gram length"),
        ({"<unk>": 0}, 0, DataType.NGRAM, OpValueError, "Invalid gram length"),
        ({"the": 0}, 2, DataType.NGRAM, NotFound, 'word_idx has no "<unk>"'),
        ({"<unk>": 0, "<s>": 1}, 2, DataType.SEQ, NotFound, 'word_idx has no "<e>"'),
    ],
)
def test_wrong_arguments(words: dict[str, int], n: int, kind: int, error: type[Exception], message: str) -> None:
    with refused(error, message):
        imikolov.train(words, n, kind)


def test_an_archive_without_the_text_is_named(files: None, serve, tar) -> None:
    serve(imikolov, "MD5", "imikolov/simple-examples.tgz", tar({"readme": b""}))
    with pytest.raises(EnforceNotMet, match="simple-examples.tgz cannot be read: there is no file .*ptb.train.txt"):
        imikolov.build_dict()
    serve(imikolov, "MD5", "imikolov/simple-examples.tgz", tar({"simple-examples/data/ptb.train.txt": b"\xff\n"}))
    with pytest.raises(EnforceNotMet, match=r"ptb.train.txt of .*simple-examples.tgz cannot be read: 'utf-8' codec"):
        imikolov.build_dict()


def test_the_stand_in_can_be_learnt() -> None:
    words = imikolov.build_dict()
    assert {"<s>", "<e>", "the"} <= set(words)
    train = list(itertools.islice(imikolov.train(words, 2)(), 200_000))
    test = list(itertools.islice(imikolov.test(words, 2)(), 5_000))
    follows: dict[int, list[int]] = {}
    for first, second in train:
        follows.setdefault(first, []).append(second)
    best = {first: max(set(seen), key=seen.count) for first, seen in follows.items()}
    hits = sum(best.get(first) == second for first, second in test) / len(test)
    guess = sum(second == words["<unk>"] for _, second in test) / len(test)
    assert 0.9 > hits > guess + 0.02  # a word predicts the next one
    assert max(words[w] for w in ("the", "<s>", "<e>")) < words["<unk>"]


def test_batches_feed_a_program() -> None:
    words = imikolov.build_dict()
    batch = next(iter(fluid.batch(reader.shuffle(imikolov.train(words, 5), 100), 32)()))
    vs = [fluid.layers.data(f"w{i}", [1], dtype="int64") for i in range(5)]
    fed = fluid.DataFeeder(vs, fluid.CPUPlace()).feed(batch)
    assert [tuple(fed[f"w{i}"].shape()) for i in range(5)] == [(32, 1)] * 5
    src, trg = (fluid.layers.data(n, [1], dtype="int64", lod_level=1) for n in ("src", "trg"))
    batch = next(iter(fluid.batch(imikolov.train(words, 0, DataType.SEQ), 3)()))
    fed = fluid.DataFeeder([src, trg], fluid.CPUPlace()).feed(batch)
    assert fed["src"].recursive_sequence_lengths() == [[len(s) for s, _ in batch]]
