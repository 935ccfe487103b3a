"""CoNLL-2005: who does what to whom, sentences of the Wall Street Journal with the roles that verbs give.

Source: X. Carreras, L. Màrquez, Introduction to the CoNLL-2005 Shared Task. Only its test part is free; Fluid trains
with that too. The archive has two gzipped files, line by line beside each other: words, and "props": the base form of
the verb or "-", then a column of brackets for each verb. Fluid: paddle.dataset.conll05; labels are numbered in the
order of their file here, where Paddle's numbers differ from process to process.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Iterable, Iterator

import numpy as np

from fluidnb.data.dataset import common, source
from fluidnb.data.dataset.roles import corpus, gzipped
from fluidnb.data.dataset.synthetic_samples import VERBS, Phrase, sentences
from fluidnb.data.dataset.synthetic_text import words
from fluidnb.data.reader.decorators import Reader
from fluidnb.files.atomic_write import atomic_write

DATA_URL = "http://paddlemodels.bj.bcebos.com/conll05st/conll05st-tests.tar.gz"
DATA_MD5 = "387719152ae52d60422c016e92a742fc"
WORDDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FwordDict.txt"
WORDDICT_MD5 = "ea7fb7d4c75cc6254716f0177a506baa"
VERBDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FverbDict.txt"
VERBDICT_MD5 = "0d2977293bbb6cbefab5b0f97db1e77c"
TRGDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FtargetDict.txt"
TRGDICT_MD5 = "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMB_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2Femb"
EMB_MD5 = "bf436eb0faa1f6f9103017f8be57cdb7"

_FILES = source.Files(
    "conll05",
    (DATA_URL, DATA_MD5),
    (WORDDICT_URL, WORDDICT_MD5),
    (VERBDICT_URL, VERBDICT_MD5),
    (TRGDICT_URL, TRGDICT_MD5),
    (EMB_URL, EMB_MD5),
    folder="conll05st",  # Paddle's name in the cache
)
fetch = _FILES.fetch
#: The number of every word that the dict lacks.
UNK_IDX = 0
_DIM = 32  # the size of a word's vector
_SAMPLES, _WORDS, _VERBS = 5_267, 44_068, 3_162  # also of the synthetic text

#: The 53 roles of the labels.
_ROLES = tuple(
    """A0 A1 A2 A3 A4 A5 AA AM AM-ADV AM-CAU AM-DIR AM-DIS AM-EXT AM-LOC AM-MNR AM-MOD AM-NEG AM-PNC AM-PRD AM-REC AM-TM
    AM-TMP V C-A0 C-A1 C-A2 C-A3 C-A4 C-A5 C-AM-ADV C-AM-CAU C-AM-DIR C-AM-DIS C-AM-EXT C-AM-LOC C-AM-MNR C-AM-NEG
    C-AM-PNC C-AM-TMP C-V R-A0 R-A1 R-A2 R-A3 R-A4 R-AA R-AM-ADV R-AM-CAU R-AM-EXT R-AM-LOC R-AM-MNR R-AM-PNC
    R-AM-TMP""".split()
)


def get_dict() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """The numbers of words, of verbs in their base form, and of labels: "B-" and "I-" of each role, and "O"."""
    words, verbs, labels = _dicts(_FILES.paths(*range(4)))
    return dict(words), dict(verbs), dict(labels)


def get_embedding() -> str:
    """A file with a vector of 32 float32 for each word, after 16 bytes of header.

    The synthetic data have random vectors; they are written into the cache.
    """
    paths = _FILES.paths(4)
    if paths is not None:
        return paths[0]
    count = len(get_dict()[0])
    path = os.path.join(common.DATA_HOME, _FILES.folder, f"synthetic-{count}.emb")
    if not os.path.exists(path):
        values = np.random.RandomState(5).uniform(-0.1, 0.1, count * _DIM).astype("<f4")
        with atomic_write(path, parents=True) as file:
            file.write(struct.pack("<iIQ", 0, 4, values.size) + values.tobytes())  # version, bytes a value, values
    return path


def test() -> Reader:
    """A sample for each verb of each sentence; all Fluid has of this data, to train with too. The synthetic text
    has as many.

    Returns:
        A reader of tuples of nine lists, each as long as the sentence: words; the two words before the verb, the verb
        as it stands there, and the two words after it, each repeated; its base form, repeated; 1 for these five
        positions and 0 for others; labels.
    """
    paths = _FILES.paths(*range(4))

    def samples() -> Iterator[tuple[list[int], ...]]:
        words, verbs, labels = _dicts(paths)
        for sentence, verb, roles in corpus(*_columns(paths)):
            at = roles.index("B-V")
            around = range(at - 2, at + 3)
            ends = ["bos"] * 2 + sentence + ["eos"] * 2  # so that the word at i is ends[i + 2]
            marks = [int(i in around) for i in range(len(sentence))]
            context = [[words.get(ends[i + 2], UNK_IDX)] * len(sentence) for i in around]
            ids = [words.get(word, UNK_IDX) for word in sentence]
            yield ids, *context, [verbs[verb]] * len(sentence), marks, [labels[role] for role in roles]

    if paths is None:
        return samples

    def named() -> Iterator[tuple[list[int], ...]]:
        with source.reading(paths[0]):
            yield from samples()

    return named


@functools.lru_cache(maxsize=2)
def _dicts(paths: tuple[str, ...] | None) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    if paths is None:
        known = ["<unk>", "bos", "eos", *words(_WORDS - 3)]
        return _numbered(known), _numbered(_verbs()), _labels(f"B-{role}" for role in _ROLES)
    lines = []
    for path in paths[1:]:
        with source.reading(path), open(path, encoding="utf-8") as file:
            lines.append([line.strip() for line in file])
    return _numbered(lines[0]), _numbered(lines[1]), _labels(lines[2])


def _numbered(words: Iterable[str]) -> dict[str, int]:
    return {word: i for i, word in enumerate(words)}


def _labels(lines: Iterable[str]) -> dict[str, int]:
    roles = dict.fromkeys(line[2:] for line in lines if line.startswith(("B-", "I-")))
    return _numbered([*(f"{place}-{role}" for role in roles for place in "BI"), "O"])


def _columns(paths: tuple[str, ...] | None) -> tuple[Iterable[str], Iterable[str]]:
    """The lines of words and of props."""
    if paths is None:
        return _written()
    folder = "conll05st-release/test.wsj"
    texts = gzipped(paths[0], f"{folder}/words/test.wsj.words.gz", f"{folder}/props/test.wsj.props.gz")
    return texts[0], texts[1]


def _verbs() -> list[str]:
    """The base forms of the synthetic verbs, sorted."""
    known = [verb.removesuffix("s") for verb in VERBS]
    return sorted([*known, *words(2 * _VERBS)[-(_VERBS - len(known)) :]])


@functools.cache
def _written() -> tuple[list[str], list[str]]:
    """Synthetic sentences of about 25 words: rare words after a small grammar's, rare verbs, and other roles."""
    vocabulary, verbs = words(_WORDS - 3), _verbs()
    lines: tuple[list[str], list[str]] = [], []
    random = np.random.RandomState(11)
    for sentence in sentences(_SAMPLES, 7):
        phrases = list(sentence)
        for i, (role, phrase) in enumerate(sentence):
            if role == "V":
                base = verbs[random.randint(_VERBS)] if random.randint(2) else phrase[0].removesuffix("s")
                phrases[i] = Phrase(role, (f"{base}s" if f"{base}s" in VERBS else base,))
            elif role != "AM-TMP":
                rare = (random.pareto(0.3, random.poisson(3)) * 50).clip(0, len(vocabulary) - 1).astype(int)
                phrases[i] = Phrase(role, sum((("this", vocabulary[r]) for r in rare), phrase))
        for number in random.choice(len(_ROLES), random.randint(1, 4), replace=False):
            if _ROLES[number] not in {role for role, _ in phrases}:
                phrases.append(Phrase(_ROLES[number], (vocabulary[1000 + 9 * number + random.randint(9)],)))
        for role, phrase in phrases:
            for i, word in enumerate(phrase):
                lines[0].append(word)
                bracket = f"{f'({role}' if i == 0 else ''}*{')' if i == len(phrase) - 1 else ''}"
                lines[1].append(f"{base if role == 'V' else '-'} {bracket}")
        lines[0].append("")
        lines[1].append("")
    return lines
