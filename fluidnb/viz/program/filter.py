"""A part of a picture: the operators that a search finds, those of a role; runs and blocks folded to a row each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from fluidnb.errors import OpValueError, near
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.program.collapse import FOLDS, fold_blocks, fold_runs
from fluidnb.viz.program.model import ROLES, BlockRow, OpRow, ProgramPicture

#: What a word of a search may look at, as in ``var:fc_0.*``; without one of these it looks at everything.
FIELDS = ("op", "var", "attr", "cell")

Test = Callable[[OpRow], bool]


def select(
    picture: ProgramPicture, search: str = "", role: str | Sequence[str] = (), fold: str | Sequence[str] = ()
) -> ProgramPicture:
    """A part of a picture.

    Args:
        picture: the whole.
        search: words that an operator must fit, all of them. A word is a part of its type, of the name of a variable,
            of ``attribute=value``, or of the place of the user's line; with ``*`` and ``?``, which stand for anything,
            all of it. ``op:``, ``var:``, ``attr:`` and ``cell:`` before a word say where to look.
        role: ``forward``, ``backward``, ``optimizer``; several with commas or in a list; all by default.
        fold: what is folded to one row: ``blocks``, ``cells`` (runs of operators of one cell), ``layers`` (of one line
            of the user's, or of one layer where lines are not known); several with commas or in a list.

    Returns:
        The part. An operator is there, with its index, if it fits or if one inside its blocks does.

    Raises:
        OpValueError: no such role, nothing that can be folded, or a quotation that does not end.

    Example:
        >>> from fluidnb.viz import read_program
        >>> y = fluid.layers.fc(fluid.layers.data("x", [3]), 2, act="relu")
        >>> [op.type for op in select(read_program(fluid.default_main_program()), "mul").root.ops]
        ['mul']
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


def _words(what: str, given: str | Sequence[str], known: Sequence[str]) -> list[str]:
    words = [w for text in ([given] if isinstance(given, str) else given) for w in text.replace(",", " ").split()]
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
            "a quotation in the search does not end.", expected='words, for example "attr:shape=[1, 2]"',
            received=search,
        ) from None  # fmt: skip
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
    """What a word is compared with."""
    if field in ("", "op"):
        yield op.type
    if field in ("", "var"):
        yield from (v.name for v in (*op.reads, *op.writes))
    if field in ("", "attr"):
        yield from (f"{name}={value}" for name, value in op.attrs)
    if field in ("", "cell"):
        yield op.place
        yield op.place.partition(", line")[0].removeprefix("cell ")


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
