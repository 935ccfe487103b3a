"""Filters the operators of a picture by search words and role, and collapses runs and blocks."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from fluidnb.errors import OpValueError, near
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.program.collapse import FOLDS, fold_blocks, fold_runs
from fluidnb.viz.program.model import ROLES, BlockRow, OpRow, ProgramPicture

#: Fields of a search word, as in ``var:fc_0.*``; a word without a field searches all.
FIELDS = ("op", "var", "attr", "cell")
Test = Callable[[OpRow], bool]


def select(
    picture: ProgramPicture, search: str = "", role: str | Sequence[str] = (), fold: str | Sequence[str] = ()
) -> ProgramPicture:
    """Filters and collapses a picture; an operator is kept, with its index, if it or one inside its blocks matches.

    Args:
        search: words that all have to match. A word matches a part of the operator type, of a variable name, of
            ``attribute=value``, or of the location of the user's line; with the wildcards ``*`` and ``?``, the whole
            text. The prefixes ``op:``, ``var:``, ``attr:`` and ``cell:`` restrict a word to one field.
        role: ``forward``, ``backward``, ``optimizer``; several with commas or in a list; all by default.
        fold: ``blocks``, ``cells`` (runs of operators of one cell), ``layers`` (of one line of the user's, or of one
            layer where lines are not known); several with commas or in a list.
    """
    roles, folds = _words("role", role, ROLES), _words("fold", fold, FOLDS)
    tests = list(_tests(search))
    if roles:
        tests.append(lambda op: op.role in roles)
    if tests:
        picture = _filtered(picture, tests, " ".join([search, *roles]).strip())
    if "blocks" in folds:
        picture = fold_blocks(picture)
    for kind in ("layers", "cells"):
        if kind in folds:
            picture = fold_runs(picture, kind)
    return picture


def _words(what: str, texts: str | Sequence[str], known: Sequence[str]) -> list[str]:
    words = [w for text in ([texts] if isinstance(texts, str) else texts) for w in text.replace(",", " ").split()]
    for word in words:
        if word not in known:
            raise OpValueError(
                f"there is no {what} {word}.", expected=", ".join(known), received=word, hint=near(word, known)
            )
    return words


def _tests(search: str) -> Iterator[Test]:
    try:
        words = shlex.split(search)
    except ValueError:
        raise OpValueError(
            "unterminated quotation in the search.", expected='words, for example "attr:shape=[1, 2]"', received=search
        ) from None
    for word in words:
        field, colon, rest = word.partition(":")
        known = bool(colon) and field in FIELDS
        yield _test(field if known else "", rest if known else word)


def _test(field: str, word: str) -> Test:
    pattern = re.sub(r"\[", "[[]", word.casefold())
    if not set(word) & set("*?"):
        pattern = f"*{pattern}*"
    return lambda op: any(fnmatchcase(text.casefold(), pattern) for text in _texts(op, field))


def _texts(op: OpRow, field: str) -> Iterator[str]:
    """The texts that a word is compared with."""
    if field in ("", "op"):
        yield op.type
    if field in ("", "var"):
        yield from (v.name for v in (*op.reads, *op.writes))
    if field in ("", "attr"):
        yield from (f"{name}={value}" for name, value in op.attrs)
    if field in ("", "cell"):
        yield op.location
        yield op.location.partition(", line")[0].removeprefix("cell ")


def _filtered(picture: ProgramPicture, tests: Sequence[Test], words: str) -> ProgramPicture:
    root, *loose = (_block(block, tests) for block in picture.blocks)
    part = replace(picture, root=root, loose=tuple(b for b in loose if b.ops))
    return replace(part, note=f"of {plural(picture.size, 'op')}: {words}")


def _block(block: BlockRow, tests: Sequence[Test]) -> BlockRow:
    return block.only(tuple(_ops(block.ops, tests)))


def _ops(ops: Iterable[OpRow], tests: Sequence[Test]) -> Iterator[OpRow]:
    for op in ops:
        if op.hides:
            hidden = tuple(_ops(op.hides, tests))
            if hidden:
                yield replace(op, hides=hidden)
            continue
        blocks, folded = ([b for b in (_block(b, tests) for b in all_of) if b.ops] for all_of in (op.blocks, op.folded))
        if blocks or folded or all(test(op) for test in tests):
            yield replace(op, blocks=tuple(blocks), folded=tuple(folded))
