"""Sentiment: 2,000 reviews of films, praise or blame, 1,600 to train and 400 to test.

Source: B. Pang and L. Lee, A Sentimental Education (2004), as NLTK offers it: a zip archive with a text file a review.
Fluid: paddle.dataset.sentiment. Each of `train` and `test` is the reader itself.
"""

from __future__ import annotations

import functools
import re
import zipfile
from collections import Counter
from collections.abc import Iterator

from fluidnb.data.dataset import common, imdb, source

URL = "https://corpora.bj.bcebos.com/movie_reviews%2Fmovie_reviews.zip"
MD5 = "155de2b77c6834dd8eea7cbe88e93acb"

#: Of every five pairs of reviews, four are to train with.
_TRAIN = 4 / 5
_WORD = re.compile(r"\w+|[^\w\s]+")


def get_word_dict() -> list[tuple[str, int]]:
    """Number all words of the reviews.

    Returns:
        (word, number), the most frequent first, equal ones by name.

    Raises:
        EnforceNotMet: the file is damaged or cannot be fetched.

    Example:
        >>> get_word_dict()[:2]
        [('the', 0), ('and', 1)]
    """
    counts = Counter(word for words, _ in _reviews() for word in words)
    return [(word, i) for i, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word)))]


def train() -> Iterator[tuple[list[int], int]]:
    """The reviews to train with: (the numbers of the words, 0 for blame or 1 for praise), blame and praise in turns.

    The stand-in has 160 short ones.

    Yields:
        Samples. This is the reader itself: ``batch(sentiment.train, 8)``.

    Raises:
        EnforceNotMet: the file is damaged or cannot be fetched.

    Example:
        >>> words, label = next(train())
        >>> type(words), type(words[0]), label
        (<class 'list'>, <class 'int'>, 0)
    """
    return _samples(True)


def test() -> Iterator[tuple[list[int], int]]:
    """The reviews to test with; the stand-in has 40.

    Yields:
        As `train`.

    Raises:
        EnforceNotMet: the file is damaged or cannot be fetched.
    """
    return _samples(False)


def fetch() -> None:
    """Fetch the archive into the cache.

    Raises:
        EnforceNotMet: it cannot be fetched.
    """
    common.download(URL, "corpora", MD5, "movie_reviews.zip")


def _samples(training: bool) -> Iterator[tuple[list[int], int]]:
    reviews, numbers = _reviews(), dict(get_word_dict())
    middle = round(len(reviews) * _TRAIN)
    chosen = reviews[:middle] if training else reviews[middle:]
    return (([numbers[word] for word in words], label) for words, label in chosen)


def _reviews() -> list[tuple[list[str], int]]:
    """All reviews as (words, label), blame and praise in turns."""
    paths = source.files("sentiment", (URL, MD5, "movie_reviews.zip"), folder="corpora")
    return _written() if paths is None else _stored(paths[0])


@functools.lru_cache(1)
def _stored(path: str) -> list[tuple[list[str], int]]:
    found: tuple[list[list[str]], list[list[str]]] = [], []
    with source.reading(path), zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            kind = re.search(r"(?:^|/)(neg|pos)/[^/]+\.txt$", name)
            if kind:
                text = archive.read(name).decode("utf-8", "replace").lower()
                found[kind[1] == "pos"].append(_WORD.findall(text))
        if not all(found):
            raise KeyError("there are no reviews in it")
    return _in_turns(*found)


@functools.cache
def _written() -> list[tuple[list[str], int]]:
    """The stand-in: reviews of the stand-in of `imdb`."""
    reviews = imdb.written()
    blame, praise = ([words for name, words in reviews if f"train/{kind}/" in name][:100] for kind in ("neg", "pos"))
    return _in_turns(blame, praise)


def _in_turns(blame: list[list[str]], praise: list[list[str]]) -> list[tuple[list[str], int]]:
    return [(words, label) for pair in zip(blame, praise, strict=False) for label, words in enumerate(pair)]
