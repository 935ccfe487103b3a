"""Every synthetic data set: said once, only when it is used; the same in every process; quick; mixed by shuffle."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.data import reader, seeding
from fluidnb.data.dataset import (
    cifar,
    conll05,
    flowers,
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


def petals(sample: tuple[bytes, int]) -> tuple[bytes, int]:
    """A flower by one row of its pixels: the whole image is large, and in training it is cropped anywhere."""
    return sample[0][100_000:101_000], sample[1]


READERS = {
    "mnist.train": lambda: mnist.train(),
    "mnist.test": lambda: mnist.test(),
    "cifar.train10": lambda: cifar.train10(),
    "cifar.test10": lambda: cifar.test10(),
    "cifar.train100": lambda: cifar.train100(),
    "cifar.test100": lambda: cifar.test100(),
    "imdb.train": lambda: imdb.train(imdb.word_dict()),
    "imdb.test": lambda: imdb.test(imdb.word_dict()),
    "imikolov.train": lambda: imikolov.train(imikolov.build_dict(), 5),
    "imikolov.test": lambda: imikolov.test(imikolov.build_dict(), 0, imikolov.DataType.SEQ),
    "movielens.train": lambda: movielens.train(),
    "movielens.test": lambda: movielens.test(),
    "conll05.test": lambda: conll05.test(),
    "uci_housing.train": lambda: uci_housing.train(),
    "uci_housing.test": lambda: uci_housing.test(),
    "flowers.train": lambda: flowers.train(mapper=petals, use_xmap=False),
    "flowers.test": lambda: flowers.test(mapper=petals, use_xmap=False),
    "flowers.valid": lambda: flowers.valid(mapper=petals, use_xmap=False),
    "voc2012.train": lambda: voc2012.train(),
    "voc2012.val": lambda: voc2012.val(),
    "mq2007.train": lambda: mq2007.train,
    "mq2007.test": lambda: lambda: mq2007.test("plain_txt"),
    "sentiment.train": lambda: sentiment.train,
    "sentiment.test": lambda: sentiment.test,
    "wmt14.train": lambda: wmt14.train(40),
    "wmt14.gen": lambda: wmt14.gen(40),
    "wmt16.train": lambda: wmt16.train(40, 50),
    "wmt16.validation": lambda: wmt16.validation(40, 50, "de"),
}

#: The samples of each that the tests read.
SOME = 300

#: The hash of the first samples of all readers, made in a new process; and what that process wrote to stderr.
DIGEST = """
import hashlib, itertools, pickle
from tests.data.dataset.test_synthetic import READERS, SOME
for name, make in READERS.items():
    samples = [pickle.dumps(sample) for sample in itertools.islice(make()(), SOME)]
    print(name, hashlib.sha256(pickle.dumps(samples)).hexdigest())
for make in READERS.values():
    next(iter(make()()))
"""


def key(sample: Sequence[Any]) -> tuple[Any, ...]:
    """A sample as something that can be compared and hashed."""
    return tuple(field.tobytes() if isinstance(field, np.ndarray) else str(field) for field in sample)


def test_every_process_has_the_same_samples_and_says_so_once(tmp_path) -> None:
    outs = []
    for seed in ("1", "2"):
        env = {"PYTHONPATH": ":".join(["", *sys.path]), "PYTHONHASHSEED": seed, "FLUIDNB_DATA_HOME": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", DIGEST], env=env, capture_output=True, text=True, check=True)
        outs.append(done.stdout)
        said = [line.split()[1] for line in done.stderr.splitlines()]
        assert said == list(dict.fromkeys(f"dataset.{name.partition('.')[0]}" for name in READERS))
        assert all(
            line.endswith(
                "is synthetic data; call fluid.dataset.download(True) to download the real data."
            )
            for line in done.stderr.splitlines()
        )
    assert outs[0] == outs[1] and len(outs[0].splitlines()) == len(READERS)


@pytest.mark.parametrize("name", READERS)
def test_every_pass_is_the_same_and_quick(name: str) -> None:
    before = time.process_time()
    read = reader.firstn(READERS[name](), SOME)
    first = [key(sample) for sample in read()]
    assert time.process_time() - before < 3
    again = reader.firstn(READERS[name](), SOME)
    assert first == [key(sample) for sample in again()] == [key(sample) for sample in read()]
    assert len(first) >= 20 and len(set(first)) > 0.9 * len(first)


@pytest.mark.parametrize("name", READERS)
def test_readers_shuffle_and_batch(name: str) -> None:
    read = reader.firstn(READERS[name](), SOME)
    whole = [key(sample) for sample in read()]
    seeding.seed(1)
    batches = list(fluid.batch(reader.shuffle(read, 10**6), 7)())
    seeding.seed(None)
    assert [len(b) for b in batches[:-1]] == [7] * (len(batches) - 1)
    mixed = [key(sample) for batch in batches for sample in batch]
    assert mixed != whole and sorted(mixed) == sorted(whole)


@pytest.mark.parametrize("name", [n for n in READERS if n.replace("train", "test") in READERS and "train" in n])
def test_train_and_test_are_different(name: str) -> None:
    seen = {key(sample) for sample in reader.firstn(READERS[name](), SOME)()}
    unseen = [key(sample) for sample in reader.firstn(READERS[name.replace("train", "test")](), SOME)()]
    assert not seen.intersection(unseen)


#: set and part -> its samples, as many as in the true data
COUNTS = {
    "uci_housing.train": 404, "uci_housing.test": 102, "mnist.test": 10_000, "cifar.test10": 10_000,
    "imdb.test": 25_000, "sentiment.test": 400, "wmt16.validation": 1_014, "conll05.test": 5_267,
    "imikolov.test": 3_370,
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_there_are_as_many_samples_as_in_the_true_data(name: str) -> None:
    assert sum(1 for _ in READERS[name]()()) == COUNTS[name]


def test_vocabularies_are_as_large_as_the_true_ones() -> None:
    assert len(imikolov.build_dict()) == 2_073 and len(imdb.word_dict()) == 5_147
    assert len(sentiment.get_word_dict()) == 39_768
    assert [len(words) for words in conll05.get_dict()] == [44_068, 3_162, 107]
    assert [len(words) for words in wmt14.get_dict(30_000)] == [30_000, 30_000]
    assert [len(wmt16.get_dict(lang, 50_000)) for lang in ("en", "de")] == [11_250, 19_220]
    assert (movielens.max_user_id(), movielens.max_movie_id(), movielens.max_job_id()) == (6_040, 3_952, 20)
    assert len(movielens.get_movie_title_dict()) == 5_175 and len(movielens.movie_categories()) == 18
    assert len(movielens.movie_info()) == 3_883


def test_importing_says_nothing_and_reads_nothing(tmp_path) -> None:
    env = {"PYTHONPATH": ":".join(["", *sys.path]), "FLUIDNB_DATA_HOME": str(tmp_path / "none")}
    code = "import fluidnb.dataset, sys; print(*[m for m in ('urllib.request', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("", "") and not (tmp_path / "none").exists()
