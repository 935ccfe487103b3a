"""WMT14: sentences in English and French, a small part of the corpus of that workshop, with their dicts.

Source: the ACL 2014 Ninth Workshop on Statistical Machine Translation. The archive has src.dict and trg.dict, a word a
line, and train/train, test/test and gen/gen: a sentence, a tab, its translation. Fluid: paddle.dataset.wmt14.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from fluidnb.data.dataset import source
from fluidnb.data.dataset.synthetic_text import Language, words
from fluidnb.data.dataset.translation import END, START, UNK, check_size, sample, turned
from fluidnb.data.reader.decorators import Reader

URL_TRAIN = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5_TRAIN = "0791583d57d5beb693b9414c5b36798c"
_FILES = source.Files("wmt14", (URL_TRAIN, MD5_TRAIN))
fetch = _FILES.fetch
#: The number of every word that a dict lacks.
UNK_IDX = 2
_LONGEST = 80
_COUNTS = {"train/train": 193_319, "test/test": 6_003, "gen/gen": 20}  # sentences, also of the synthetic text
_WORDS = 30_000  # in the dict of either language


def train(dict_size: int) -> Reader:
    """The sentences to train with; the synthetic text has as many.

    Returns:
        A reader of tuples of three lists of ints: the source between "<s>" and "<e>"; the target after "<s>"; the
        target before "<e>". Sentences of more than 80 are left out.
    """
    return _reader("train/train", dict_size)


def test(dict_size: int) -> Reader:
    """The sentences to test with, 6,003 of them; samples as in `train`."""
    return _reader("test/test", dict_size)


def gen(dict_size: int) -> Reader:
    """A few sentences to translate; samples as in `train`."""
    return _reader("gen/gen", dict_size)


def get_dict(
    dict_size: int, reverse: bool = True
) -> tuple[dict[int, str], dict[int, str]] | tuple[dict[str, int], ...]:
    """The numbers of the words of both languages; 0, 1 and 2 are "<s>", "<e>" and "<unk>"."""
    dicts = _dicts(_FILES.paths(), check_size("dict_size", dict_size))
    return (turned(dicts[0]), turned(dicts[1])) if reverse else (dict(dicts[0]), dict(dicts[1]))


def _reader(part: str, dict_size: int) -> Reader:
    check_size("dict_size", dict_size)
    paths = _FILES.paths()

    def samples() -> Iterator[tuple[list[int], list[int], list[int]]]:
        dicts = _dicts(paths, dict_size)
        for line in _lines(paths, part):
            pair = sample(line, dicts, UNK_IDX)
            if pair is not None and len(pair[0]) <= _LONGEST and len(pair[1]) - 1 <= _LONGEST:
                yield pair

    return samples


@functools.lru_cache(maxsize=4)
def _dicts(paths: tuple[str, ...] | None, size: int) -> tuple[dict[str, int], dict[str, int]]:
    if paths is None:
        known = words(_WORDS - 3)
        columns = [[START, END, UNK, *known], [START, END, UNK, *(word[::-1] for word in known)]]
    else:
        columns = [[line.strip() for line in source.lines(paths[0], name)] for name in ("src.dict", "trg.dict")]
    for path in paths or ():
        with source.reading(path, "trg.dict"):
            if columns[1][:3] != [START, END, UNK]:
                raise ValueError(f"it does not begin with {START}, {END} and {UNK}")
    first, second = ({word: i for i, word in enumerate(column[:size])} for column in columns)
    return first, second


def _lines(paths: tuple[str, ...] | None, part: str) -> Iterator[str]:
    if paths is None:
        known = words(_WORDS - 3)
        language = Language(known, kept=10_000, cutoff=20)
        return language.pairs(_COUNTS[part], 14 + len(part), 24, _LONGEST, [(word[::-1],) for word in known])
    return source.lines(paths[0], part)
