"""Collapses a large program to few enough nodes for a graph layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isqrt

from fluidnb.errors import NotFound, OpValueError
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.program.collapse import fold_blocks, fold_run, fold_runs
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture

#: Nodes of a graph at most: larger graphs are unreadable, and their layout takes long.
MOST = 300
#: Nodes at least, where the program has so many: a graph of two nodes shows nothing.
FEW = 12
#: Syntax of a block, an operator, or a range of operators.
SPAN = re.compile(r"(\d+)(?::(\d+)(?:-(\d+))?)?")


def level(picture: ProgramPicture, most: int = MOST) -> ProgramPicture:
    """Collapses a picture until at most ``most`` rows are left; its note then has the number of nodes.

    A picture that fits is returned unchanged. Otherwise nested blocks are collapsed, then the operators of one layer,
    chains (each operator is the only reader of the one before), the operators of one line, of one cell, then
    consecutive layers.
    """
    methods: tuple[tuple[Callable[[ProgramPicture], ProgramPicture], int], ...] = (
        (lambda p: fold_runs(p, "names"), FEW), (fold_chains, 2),
        (lambda p: fold_runs(p, "layers"), FEW), (lambda p: fold_runs(p, "cells"), FEW),
    )  # fmt: skip
    if _rows(picture) <= most:
        return picture
    closed = fold_blocks(picture)
    if 1 < _rows(closed) <= most:
        return _noted(picture, closed)
    for collapse, least in methods:
        folded = collapse(closed)
        if min(least, most) <= _rows(folded) <= most:
            return _noted(picture, folded)
    return _noted(picture, _in_parts(fold_runs(closed, "names"), most))


def part(picture: ProgramPicture, span: str) -> ProgramPicture:
    """A block of a program, or some of its operators."""
    match = SPAN.fullmatch(span)
    if match is None:
        raise OpValueError(
            "not a block or a range of operators.", expected="a block 1, or operators 0:12 or 0:12-40", received=span
        )
    block = int(match[1])
    first, last = (None if text is None else int(text) for text in match.groups()[1:])
    inside = {b.index: b for each in picture.blocks for b in each.inside()}
    if block not in inside:
        known = ", ".join(map(str, sorted(inside)))
        raise NotFound(f"there is no block {block}.", expected=f"one of {known}", received=str(block))
    row = inside[block]
    if first is None:
        return ProgramPicture(row, title=f"{picture.title}, block {block}" if block else picture.title)
    ops = tuple(op for op in row.ops if first <= op.index <= (first if last is None else last))
    if not ops:
        expected = f"0 to {len(row.ops) - 1}" if row.ops else "a block with operators"
        raise OpValueError(f"block {block} has no such operators.", expected=expected, received=span)
    note = f"{_span(list(ops))} of {plural(len(row.ops), 'op')}"
    return ProgramPicture(row.only(ops), title=picture.title, note=note)


def fold_chains(picture: ProgramPicture) -> ProgramPicture:
    """Collapses each chain: operators of one role where each is the only reader of what the one before wrote."""
    readers: dict[str, int] = {}
    for op in picture.each():
        for name in {v.name for v in op.reads}:
            readers[name] = readers.get(name, 0) + 1

    def follows(before: OpRow, op: OpRow) -> bool:
        wrote, reads = {v.name for v in before.writes}, {v.name for v in op.reads}
        alone = all(readers.get(name, 0) <= 1 for name in wrote)
        return before.role == op.role and bool(wrote & reads) and alone and not before.folded and not op.folded

    return _cut(picture, lambda run, op: not follows(run[-1], op), _span)


def _in_parts(picture: ProgramPicture, most: int) -> ProgramPicture:
    """Collapses ranges of equal size, about as many as each has operators; of one role each where possible."""
    total = _rows(picture)
    size = max(isqrt(total), -(-total // max(most - len(picture.blocks), 1)), 2)

    def title(run: list[OpRow]) -> str:
        names = [op.type for op in run if op.hides]
        return _span(run) + (f"  {names[0]} … {names[-1]}" if len(names) > 1 else "")

    separate = _cut(picture, lambda run, op: len(run) == size or run[-1].role != op.role, title)
    return separate if _rows(separate) <= most else _cut(picture, lambda run, op: len(run) == size, title)


def _cut(
    picture: ProgramPicture, ends: Callable[[list[OpRow], OpRow], bool], title: Callable[[list[OpRow]], str]
) -> ProgramPicture:
    """Collapses runs of operators, each up to the operator before which it ``ends``."""

    def runs(block: BlockRow) -> Iterator[OpRow]:
        run: list[OpRow] = []
        for op in block.ops:
            if run and ends(run, op):
                yield from fold_run(run, title(run))
                run = []
            run.append(op)
        yield from fold_run(run, title(run))

    return picture.with_blocks(lambda block: replace(block, ops=tuple(runs(block))))


def _span(run: list[OpRow]) -> str:
    if not run:
        return ""
    first, last = run[0].index, (run[-1].hides or run)[-1].index
    return f"{run[0].block}:{first}-{last}" if last > first else f"{run[0].block}:{first}"


def _rows(picture: ProgramPicture) -> int:
    return sum(1 for block in picture.blocks for _ in block.walk())


def _noted(full: ProgramPicture, folded: ProgramPicture) -> ProgramPicture:
    if folded == full:
        return full
    words = [full.note, f"folded to {plural(_rows(folded), 'node')}"]
    return replace(folded, note=", ".join(w for w in words if w))
