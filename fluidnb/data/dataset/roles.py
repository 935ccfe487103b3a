"""Semantic roles as the CoNLL shared tasks write them, word by word: brackets in columns, one for each verb."""

import gzip
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from fluidnb.data.dataset import source
from fluidnb.errors import EnforceNotMet


def corpus(words: Iterable[str], props: Iterable[str]) -> Iterator[tuple[list[str], str, list[str]]]:
    """The words, base form and labels of each verb, from lines of words and lines of bracket columns."""
    sentence: list[str] = []
    rows: list[list[str]] = []
    for word, prop in zip_longest(map(str.strip, words), map(str.split, props), fillvalue=""):
        if bool(word) != bool(prop):
            raise ValueError(f'the words and the props of "{" ".join(sentence)}" end at different lines')
        if word:
            sentence.append(word)
            rows.append(list(prop))
            continue
        yield from _verbs(sentence, rows)
        sentence, rows = [], []
    yield from _verbs(sentence, rows)


def _verbs(sentence: list[str], rows: list[list[str]]) -> Iterator[tuple[list[str], str, list[str]]]:
    verbs = [row[0] for row in rows if row[0] != "-"]
    if any(len(row) != 1 + len(verbs) for row in rows):
        raise ValueError(f'"{" ".join(sentence)}" has {len(verbs)} verbs and another number of columns')
    for column, verb in enumerate(verbs, 1):
        yield sentence, verb, list(labels(row[column] for row in rows))


def labels(brackets: Iterable[str]) -> Iterator[str]:
    """Brackets around words as labels: "B-" and a role, "I-" and a role, or "O" outside of brackets."""
    role = ""  # of the bracket that is open
    for text in brackets:
        name, star, close = text.partition("*")
        if not star or close not in ("", ")") or name and (name[0] != "(" or len(name) == 1):
            raise ValueError(f"Unexpected label: {text}")
        if name:
            yield f"B-{name[1:]}"
            role = name[1:]
        else:
            yield f"I-{role}" if role else "O"
        if close:
            role = ""


def gzipped(path: str, *names: str) -> tuple[list[str], ...]:
    """The lines of gzipped files in a tar archive."""
    texts: dict[str, list[str]] = {}
    for name, data in source.contents(path, set(names).__contains__):
        with source.reading(path, name):
            texts[name] = gzip.decompress(data).decode("utf-8").splitlines()
    missing = [name for name in names if name not in texts]
    if missing:
        raise EnforceNotMet(
            f"{path} has no {missing[0]}.", hint="delete it and fetch it again: fluid.dataset.download(True)."
        )
    return tuple(texts[name] for name in names)
