"""WMT16: descriptions of images in English and German, 29,000 to train, 1,000 to test, 1,014 to validate.

Source: D. Elliott et al., Multi30K: Multilingual English-German Image Descriptions (2016), in single words. The archive
has wmt16/train, wmt16/test and wmt16/val: a sentence, a tab, its translation. Fluid: paddle.dataset.wmt16.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from fluidnb.data.dataset import source
from fluidnb.data.dataset.synthetic_text import Language, words
from fluidnb.data.dataset.translation import END, START, UNK, check_size, count_words, sample, turned
from fluidnb.data.reader.decorators import Reader
from fluidnb.errors import OpValueError

DATA_URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
DATA_MD5 = "0c38be43600334966403524a40dcd81e"
_FILES = source.Files("wmt16", (DATA_URL, DATA_MD5, "wmt16.tar.gz"))
fetch = _FILES.fetch
#: The words of the two languages with "<s>", "<e>" and "<unk>"; no dict is larger.
TOTAL_EN_WORDS, TOTAL_DE_WORDS = 11250, 19220
_TOTALS = {"en": TOTAL_EN_WORDS, "de": TOTAL_DE_WORDS}
_COUNTS = {"wmt16/train": 29_000, "wmt16/test": 1_000, "wmt16/val": 1_014}  # sentences, also of the synthetic text


def train(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """The sentences to train with; the synthetic text has as many.

    Args:
        src_dict_size: the words to know in the source language, "<s>", "<e>" and "<unk>" (0, 1, 2) among them.

    Returns:
        A reader of tuples of three lists of ints: the source between "<s>" and "<e>"; the target after "<s>"; the
        target before "<e>".
    """
    return _reader("wmt16/train", src_dict_size, trg_dict_size, src_lang)


def test(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """The sentences to test with, 1,000 of them; samples as in `train`."""
    return _reader("wmt16/test", src_dict_size, trg_dict_size, src_lang)


def validation(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """The sentences to validate with, 1,014 of them; samples as in `train`."""
    return _reader("wmt16/val", src_dict_size, trg_dict_size, src_lang)


def get_dict(lang: str, dict_size: int, reverse: bool = False) -> dict[str, int] | dict[int, str]:
    """The numbers of the words of a language: those of the sentences to train with, the most frequent first.

    Args:
        dict_size: words to know, with "<s>", "<e>" and "<unk>" (0, 1, 2); fewer where there are not as many.
    """
    size = min(check_size("dict_size", dict_size), _TOTALS[_check_language("lang", lang)])
    words = _dict(_FILES.paths(), lang, size)
    return turned(words) if reverse else dict(words)


def _check_language(what: str, lang: str) -> str:
    if lang not in _TOTALS:
        raise OpValueError(
            f"An error language type in {what}.", expected='"en" (for English) or "de" (for German)', received=lang
        )
    return lang


def _reader(part: str, src_dict_size: int, trg_dict_size: int, src_lang: str) -> Reader:
    check_size("src_dict_size", src_dict_size)
    check_size("trg_dict_size", trg_dict_size)
    column = ["en", "de"].index(_check_language("src_lang", src_lang))
    trg_lang = ["de", "en"][column]
    paths = _FILES.paths()

    def samples() -> Iterator[tuple[list[int], list[int], list[int]]]:
        dicts = (
            _dict(paths, src_lang, min(src_dict_size, _TOTALS[src_lang])),
            _dict(paths, trg_lang, min(trg_dict_size, _TOTALS[trg_lang])),
        )
        for line in _lines(paths, part):
            pair = sample(line, dicts, dicts[0][UNK], column)
            if pair is not None:
                yield pair

    return samples


@functools.lru_cache(maxsize=8)
def _dict(paths: tuple[str, ...] | None, lang: str, size: int) -> dict[str, int]:
    if paths is None:
        known = [form for forms in _translated() for form in forms] if lang == "de" else words(TOTAL_EN_WORDS - 3)
        return {word: i for i, word in enumerate([START, END, UNK, *known][:size])}
    columns = (line.strip().split("\t") for line in _lines(paths, "wmt16/train"))
    frequent = count_words(pair[lang == "de"] for pair in columns if len(pair) == 2)
    return {word: i for i, word in enumerate([START, END, UNK, *frequent][:size])}


@functools.cache
def _translated() -> list[tuple[str, ...]]:
    """The German of each synthetic English word; many have two forms, so that there are as many as in the true text."""
    english = words(TOTAL_EN_WORDS - 3)
    twice = TOTAL_DE_WORDS - TOTAL_EN_WORDS
    return [(word[::-1], f"{word[::-1]}en")[: 1 + (i < twice)] for i, word in enumerate(english)]


def _lines(paths: tuple[str, ...] | None, part: str) -> Iterator[str]:
    if paths is None:
        language = Language(words(TOTAL_EN_WORDS - 3), kept=3_000, cutoff=10)
        return language.pairs(_COUNTS[part], 16 + len(part), 13, 40, _translated())
    return source.lines(paths[0], part)
