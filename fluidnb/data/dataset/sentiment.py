"""Sentiment: 2,000 reviews of films, praise or blame, 1,600 to train and 400 to test.

Source: B. Pang and L. Lee, A Sentimental Education (2004), as NLTK offers it: a zip archive with a text file a review.
Fluid: paddle.dataset.sentiment. Each of `train` and `test` is the reader itself.
"""

import functools
import re
import zipfile
from collections import Counter
from collections.abc import Iterator

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import by_frequency
from fluidnb.data.dataset.synthetic_text import VERDICTS, Language, words

URL = "https://corpora.bj.bcebos.com/movie_reviews%2Fmovie_reviews.zip"
MD5 = "155de2b77c6834dd8eea7cbe88e93acb"
_FILES = source.Files("sentiment", (URL, MD5, "movie_reviews.zip"), folder="corpora")
fetch = _FILES.fetch
#: Of every five pairs of reviews, four are to train with.
_TRAIN = 4 / 5
_COUNT = 1_000  # reviews of each kind, also of the synthetic ones
_WORD = re.compile(r"\w+|[^\w\s]+")


def get_word_dict() -> list[tuple[str, int]]:
    """Number all words of the reviews.

    Returns:
        (word, number), the most frequent first, equal ones by name.
    """
    paths = _FILES.paths()
    if paths is None:
        return [(word, i) for i, word in enumerate(_language().words)]
    counts = Counter(word for words, _ in _stored(paths[0]) for word in words)
    return list(by_frequency(counts).items())


def train() -> Iterator[tuple[list[int], int]]:
    """The reviews to train with: (the numbers of the words, 0 for blame or 1 for praise), blame and praise in turns.

    Yields:
        Samples. This is the reader itself: ``batch(sentiment.train, 8)``.
    """
    return _samples(True)


def test() -> Iterator[tuple[list[int], int]]:
    """The reviews to test with, 400 of them."""
    return _samples(False)


def _samples(training: bool) -> Iterator[tuple[list[int], int]]:
    paths = _FILES.paths()
    if paths is None:
        return _written(training)
    reviews, numbers = _stored(paths[0]), dict(get_word_dict())
    middle = round(len(reviews) * _TRAIN)
    chosen = reviews[:middle] if training else reviews[middle:]
    return (([numbers[word] for word in words], label) for words, label in chosen)


@functools.lru_cache(1)
def _stored(path: str) -> list[tuple[list[str], int]]:
    by_kind: tuple[list[list[str]], list[list[str]]] = [], []
    with source.reading(path), zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            kind = re.search(r"(?:^|/)(neg|pos)/[^/]+\.txt$", name)
            if kind:
                text = archive.read(name).decode("utf-8", "replace").lower()
                by_kind[kind[1] == "pos"].append(_WORD.findall(text))
        if not all(by_kind):
            raise KeyError("there are no reviews in it")
    return [review for pair in zip(*by_kind, strict=False) for review in zip(pair, (0, 1), strict=True)]


@functools.cache
def _language() -> Language:
    """39,768 words, as in the true reviews."""
    return Language(words(39_768, VERDICTS), kept=6_000, cutoff=20)


def _written(training: bool) -> Iterator[tuple[list[int], int]]:
    """Synthetic reviews, blame and praise in turns; the language has praise as label 0."""
    count = round(_COUNT * (_TRAIN if training else 1 - _TRAIN))
    kinds = (_language().reviews(count, 2 * training + label, 1 - label, mean=750, most=2_500) for label in (0, 1))
    for pair in zip(*kinds, strict=True):
        yield from zip(pair, (0, 1), strict=True)
