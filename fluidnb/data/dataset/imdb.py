"""IMDB: reviews of films, praise or blame, 25,000 to train and 25,000 to test.

Source: A. Maas et al., Learning Word Vectors for Sentiment Analysis, ACL 2011. The archive has a text file a review.
Fluid: paddle.dataset.imdb. Words are str, where Paddle on Python 3 has bytes.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import by_frequency
from fluidnb.data.dataset.synthetic_text import VERDICTS, Language, words
from fluidnb.data.reader.decorators import Reader
from fluidnb.errors import NotFound, OpValueError

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"
_FILES = source.Files("imdb", (URL, MD5))
fetch = _FILES.fetch
_PUNCTUATION = string.punctuation.encode()
_COUNT = 12_500  # reviews of praise, and of blame, in either part, also of the synthetic ones


def word_dict() -> dict[str, int]:
    """Number the words that occur more than 150 times in all reviews."""
    return build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), 150)


def build_dict(pattern: re.Pattern[str], cutoff: int) -> dict[str, int]:
    """Number the words of the reviews whose file names match.

    Returns:
        Word to number, the most frequent first, equal ones by name; "<unk>" is the last one.
    """
    try:
        pattern.match("")
    except (AttributeError, TypeError):
        raise OpValueError("pattern should be a compiled regular expression for text.", received=pattern) from None
    counts = _counts(_FILES.paths(), pattern)
    return by_frequency(counts, cutoff, "<unk>")


def train(word_idx: Mapping[str, int]) -> Reader:
    """The reviews to train with: (the numbers of the words, 0 for praise or 1 for blame), all praise first.

    Returns:
        A reader; it keeps the reviews in memory after its first pass.
    """
    return _reader("train", word_idx)


def test(word_idx: Mapping[str, int]) -> Reader:
    """The reviews to test with; samples as in `train`."""
    return _reader("test", word_idx)


def _reader(part: str, words: Mapping[str, int]) -> Reader:
    if "<unk>" not in words:
        raise NotFound('word_idx has no "<unk>".', hint="use the dict of word_dict.")
    paths = _FILES.paths()
    unknown = words["<unk>"]

    if paths is None:
        return lambda: ((review, label) for label in (0, 1) for review in _written(part, label, words))

    @cache
    def read() -> tuple[list[list[int]], list[list[int]]]:
        by_label: tuple[list[list[int]], list[list[int]]] = [], []
        for name, review in _reviews(paths, re.compile(rf"aclImdb/{part}/(pos|neg)/.*\.txt$")):
            by_label["/neg/" in name].append([words.get(word, unknown) for word in review])
        return by_label

    def samples() -> Iterator[tuple[list[int], int]]:
        for label, reviews in enumerate(read()):
            for review in reviews:
                yield review, label

    return samples


def _counts(paths: tuple[str, ...] | None, pattern: re.Pattern[str]) -> Mapping[str, float]:
    """Word counts of the matching reviews; expected counts for synthetic reviews."""
    if paths is None:
        names = (f"aclImdb/{part}/{kind}/" for part in ("train", "test") for kind in ("pos", "neg"))
        matching = sum(pattern.match(f"{name}{i}_9.txt") is not None for name in names for i in range(_COUNT))
        return _language().counts(matching / (4 * _COUNT))
    counts: Counter[str] = Counter()
    for _, review in _reviews(paths, pattern):
        counts.update(review)
    return counts


def _reviews(paths: tuple[str, ...], pattern: re.Pattern[str]) -> Iterator[tuple[str, list[str]]]:
    """(file name, words in small letters without punctuation) of the reviews that match."""
    for name, data in source.contents(paths[0], pattern.match):
        # As bytes: only ASCII has small letters and blanks here, as in Paddle.
        clean = b" ".join(data.translate(None, _PUNCTUATION).lower().split())
        yield name, clean.decode("utf-8", "replace").split(" ") if clean else []


@cache
def _language() -> Language:
    """30,000 words, 5,146 of them more often than 150 times, as in the true reviews; verdicts are the most frequent."""
    return Language(words(30_000, VERDICTS), kept=5_146, cutoff=150)


def _written(part: str, label: int, numbers: Mapping[str, int]) -> Iterator[list[int]]:
    """The synthetic reviews of one kind, as numbers of words."""
    language = _language()
    table = [numbers.get(word, numbers["<unk>"]) for word in language.words]
    for ranks in language.reviews(_COUNT, 2 * (part == "test") + label, label, mean=233, most=2_470):
        yield [table[rank] for rank in ranks]
