"""The Penn Treebank as T. Mikolov's language models use it: 42,068 sentences to train, 3,370 to validate.

Source: M. Marcus et al., Building a large annotated corpus of English (1993); simple-examples.tgz of the RNNLM toolkit.
Fluid: paddle.dataset.imikolov. Words are str, where Paddle on Python 3 has bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import by_frequency
from fluidnb.data.dataset.synthetic_text import Language, words
from fluidnb.data.reader.decorators import Reader
from fluidnb.errors import NotFound, OpValueError

URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5 = "30177ea32e27c525793142b6bf2c8e2d"
_FILES = source.Files("imikolov", (URL, MD5))
fetch = _FILES.fetch
_TRAIN, _VALID = "simple-examples/data/ptb.train.txt", "simple-examples/data/ptb.valid.txt"
_COUNTS = {_TRAIN: 42_068, _VALID: 3_370}  # sentences, also of the synthetic text


class DataType:
    """Kind of a sample: n consecutive words, or a whole sentence."""

    NGRAM = 1
    SEQ = 2


def build_dict(min_word_freq: int = 50) -> dict[str, int]:
    """Number the words of both files, the most frequent first, equal ones by name.

    Returns:
        Word to number; "<s>" and "<e>" begin and end sentences, "<unk>" is the last one.
    """
    counts = _counts(_FILES.paths())
    del counts["<unk>"]  # the text has it too; it gets the last number
    return by_frequency(counts, min_word_freq, "<unk>")


def train(word_idx: Mapping[str, int], n: int, data_type: int = DataType.NGRAM) -> Reader:
    """The sentences to train with, as numbers; the synthetic text has as many.

    Args:
        n: NGRAM: words in a sample. SEQ: leave out sentences longer than this; 0: none.
        data_type: NGRAM: a tuple of n ints for every n words in a row, "<s>" and "<e>" among them.
            SEQ: (the sentence after "<s>", the sentence before "<e>"), two lists of equal length.
    """
    return _reader(_TRAIN, word_idx, n, data_type)


def test(word_idx: Mapping[str, int], n: int, data_type: int = DataType.NGRAM) -> Reader:
    """The sentences to validate with; samples as in `train`."""
    return _reader(_VALID, word_idx, n, data_type)


def _reader(part: str, words: Mapping[str, int], n: int, data_type: int) -> Reader:
    if data_type not in (DataType.NGRAM, DataType.SEQ):
        raise OpValueError("Unknown data type", received=data_type, expected="DataType.NGRAM or DataType.SEQ")
    if n < 0 or n == 0 and data_type == DataType.NGRAM:
        raise OpValueError("Invalid gram length", received=f"n = {n}")
    for word in ("<unk>", "<s>", "<e>"):
        if word not in words and (word == "<unk>" or data_type == DataType.SEQ):
            raise NotFound(f'word_idx has no "{word}".', hint="use the dict of build_dict.")
    paths = _FILES.paths()
    unknown = words["<unk>"]

    def samples() -> Iterator[tuple[int, ...] | tuple[list[int], list[int]]]:
        for line in _lines(paths, part):
            if data_type == DataType.NGRAM:
                ids = [words.get(w, unknown) for w in ("<s>", *line.split(), "<e>")]
                for end in range(n, len(ids) + 1):
                    yield tuple(ids[end - n : end])
            else:
                ids = [words.get(w, unknown) for w in line.split()]
                if n == 0 or len(ids) + 1 <= n:
                    yield [words["<s>"], *ids], [*ids, words["<e>"]]

    return samples


def _counts(paths: tuple[str, ...] | None) -> Counter[str]:
    """Word counts of both files; expected counts for the synthetic text."""
    if paths is None:
        ends = sum(_COUNTS.values())
        return Counter({**_language().counts(), "<s>": ends, "<e>": ends})
    counts: Counter[str] = Counter()
    for part in (_TRAIN, _VALID):
        for line in _lines(paths, part):
            counts.update(line.split())
            counts.update(("<s>", "<e>"))
    return counts


@cache
def _language() -> Language:
    """10,000 words, 2,070 of them more often than 50 times, as in the true text without the ends of sentences."""
    return Language(words(10_000), kept=2_070, cutoff=50)


def _lines(paths: tuple[str, ...] | None, part: str) -> Iterator[str]:
    if paths is None:
        return _language().texts(_COUNTS[part], len(part), mean=21.1, most=82)
    return source.lines(paths[0], part)
