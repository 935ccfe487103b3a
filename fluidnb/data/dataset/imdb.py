"""IMDB: reviews of films, praise or blame, 25,000 to train and 25,000 to test.

Source: A. Maas et al., Learning Word Vectors for Sentiment Analysis, ACL 2011. The archive has a text file a review.
Fluid: paddle.dataset.imdb. Words are str, where Paddle on Python 3 has bytes.
"""

from __future__ import annotations

import functools
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from fluidnb.data.dataset import common, source, standin
from fluidnb.data.reader.decorators import Reader
from fluidnb.errors import NotFound, OpValueError

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"

_PUNCTUATION = string.punctuation.encode()
_TRAIN, _TEST = 250, 50  # reviews of the stand-in, for each of praise and blame
_PRAISE = "beautiful brilliant charming delightful funny great lovely moving superb wonderful".split()
_BLAME = "awful boring clumsy dreadful dull empty poor terrible tedious worst".split()


def word_dict() -> dict[str, int]:
    """Number the words that occur more than 150 times in all reviews.

    Returns:
        Word to number, the most frequent first; "<unk>" is the last one.

    Raises:
        EnforceNotMet: the file is damaged or cannot be fetched.

    Example:
        >>> words = word_dict()
        >>> words["<unk>"] == len(words) - 1
        True
    """
    return build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), 150)


def build_dict(pattern: re.Pattern[str], cutoff: int) -> dict[str, int]:
    """Number the words of the reviews whose file names match.

    Args:
        pattern: for names such as ``aclImdb/train/pos/0_9.txt``.
        cutoff: words that occur as often as this, or less, are left out.

    Returns:
        Word to number, the most frequent first, equal ones by name; "<unk>" is the last one.

    Raises:
        EnforceNotMet: the file is damaged or cannot be fetched.

    Example:
        >>> list(build_dict(re.compile(r"aclImdb/train/pos/"), 400))
        ['the', 'and', 'was', 'every', '<unk>']
    """
    counts: Counter[str] = Counter()
    for _, words in _reviews(source.files("imdb", (URL, MD5)), pattern):
        counts.update(words)
    kept = sorted((word for word, n in counts.items() if n > cutoff), key=lambda word: (-counts[word], word))
    return {word: i for i, word in enumerate([*kept, "<unk>"])}


def train(word_idx: Mapping[str, int]) -> Reader:
    """The reviews to train with: (the numbers of the words, 0 for praise or 1 for blame), all praise first.

    The stand-in has 500 short ones.

    Args:
        word_idx: word to number, of `word_dict`.

    Returns:
        A reader; it keeps the reviews in memory after its first pass.

    Raises:
        EnforceNotMet: the file is damaged or cannot be fetched.
        NotFound: `word_idx` lacks "<unk>".

    Example:
        >>> words, label = next(iter(train(word_dict())()))
        >>> type(words), type(words[0]), label
        (<class 'list'>, <class 'int'>, 0)
    """
    return _reader("train", word_idx)


def test(word_idx: Mapping[str, int]) -> Reader:
    """The reviews to test with; the stand-in has 100.

    Args:
        word_idx: as for `train`.

    Returns:
        A reader of the same samples as `train`.

    Raises:
        EnforceNotMet: the file is damaged or cannot be fetched.
        NotFound: `word_idx` lacks "<unk>".
    """
    return _reader("test", word_idx)


def fetch() -> None:
    """Fetch the archive into the cache.

    Raises:
        EnforceNotMet: it cannot be fetched.
    """
    common.download(URL, "imdb", MD5)


def _reader(part: str, words: Mapping[str, int]) -> Reader:
    if "<unk>" not in words:
        raise NotFound('word_idx has no "<unk>".', hint="use the dict of word_dict.")
    paths = source.files("imdb", (URL, MD5))
    unknown = words["<unk>"]

    @functools.cache
    def read() -> tuple[list[list[int]], list[list[int]]]:
        found: tuple[list[list[int]], list[list[int]]] = [], []
        for name, review in _reviews(paths, re.compile(rf"aclImdb/{part}/(pos|neg)/.*\.txt$")):
            found["/neg/" in name].append([words.get(word, unknown) for word in review])
        return found

    def samples() -> Iterator[tuple[list[int], int]]:
        for label, reviews in enumerate(read()):
            for review in reviews:
                yield review, label

    return samples


def _reviews(paths: tuple[str, ...] | None, pattern: re.Pattern[str]) -> Iterator[tuple[str, list[str]]]:
    """(file name, words in small letters without punctuation) of the reviews that match."""
    try:
        pattern.match("")
    except (AttributeError, TypeError):
        raise OpValueError("pattern should be a compiled regular expression for text.", received=pattern) from None
    if paths is None:
        yield from ((name, words) for name, words in written() if pattern.match(name))
        return
    for name, data in source.contents(paths[0], pattern.match):
        # As bytes: only ASCII has small letters and blanks here, as in Paddle.
        clean = b" ".join(data.translate(None, _PUNCTUATION).lower().split())
        yield name, clean.decode("utf-8", "replace").split(" ") if clean else []


@functools.cache
def written() -> list[tuple[str, list[str]]]:
    """The stand-in: sentences on something, and verdicts most of which agree with the label.

    Returns:
        (file name as in the archive, words) of each review.

    Example:
        >>> written()[0][0], len(written())
        ('aclImdb/train/pos/0_9.txt', 600)
    """
    reviews = []
    for part, seed, count in (("train", 1, _TRAIN), ("test", 2, _TEST)):
        random = np.random.RandomState(seed)
        texts = iter(standin.texts(8 * count, seed))
        for label in ("pos", "neg"):
            for number in range(count):
                words: list[str] = []
                for _ in range(4):
                    kind = _PRAISE if (label == "pos") == (random.random_sample() < 0.8) else _BLAME
                    verdict = [kind[i] for i in random.randint(0, len(kind), 2)]
                    noun = standin.NOUNS[random.randint(len(standin.NOUNS))]
                    words += [*next(texts).split(), "the", noun, "was", verdict[0], "and", verdict[1]]
                reviews.append((f"aclImdb/{part}/{label}/{number}_{'9' if label == 'pos' else '2'}.txt", words))
    return reviews
