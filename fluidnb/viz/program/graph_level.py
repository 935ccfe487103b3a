"""One level of a large program, few enough operators to lay out as a graph: the rest is folded, with counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isqrt

from fluidnb.errors import NotFound, OpValueError
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.program.collapse import fold_blocks, fold_run, fold_runs
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture

#: Nodes of a graph at most: more than that nobody takes in, and laying them out takes long.
MOST = 300
#: Nodes that a level shows at least, where the program has so many: a fold of nearly everything tells nothing.
FEW = 12
#: How users write a block, an operator of one, or some that follow each other.
SPAN = re.compile(r"(\d+)(?::(\d+)(?:-(\d+))?)?")


def level(picture: ProgramPicture, most: int = MOST) -> ProgramPicture:
    """A picture with so much folded that few enough rows are left.

    Everything is shown if it fits. If not, the blocks that operators run are folded, then the operators of one layer,
    chains (operators that each read only what the one before made for it), the operators of one line, of one cell, then
    layers that follow each other.

    Args:
        picture: what is shown.
        most: rows at most.

    Returns:
        The folded picture; its note says what is left to be opened.

    Example:
        >>> ops = tuple(OpRow(0, i, "relu", "forward") for i in range(1000))
        >>> [op.text for op in level(ProgramPicture(BlockRow(0, -1, ops))).root.ops][:2]
        ['0:0-30  31 ops', '0:31-61  31 ops']
    """
    ways: tuple[tuple[Callable[[ProgramPicture], ProgramPicture], int], ...] = (
        (lambda p: fold_runs(p, "names"), FEW), (fold_chains, 2),
        (lambda p: fold_runs(p, "layers"), FEW), (lambda p: fold_runs(p, "cells"), FEW),
    )  # fmt: skip
    if _rows(picture) <= most:
        return picture
    closed = fold_blocks(picture)
    if 1 < _rows(closed) <= most:
        return _noted(picture, closed)
    for way, least in ways:
        folded = way(closed)
        if min(least, most) <= _rows(folded) <= most:
            return _noted(picture, folded)
    return _noted(picture, _in_parts(fold_runs(closed, "names"), most))


def part(picture: ProgramPicture, span: str) -> ProgramPicture:
    """A block of a program, or some of its operators.

    Args:
        picture: the program.
        span: a block ``1``, an operator ``0:12``, or operators ``0:12-40``.

    Returns:
        The picture of these.

    Raises:
        NotFound: there is no such block.
        OpValueError: this is no such thing, or the block has no such operators.

    Example:
        >>> ops = tuple(OpRow(0, i, "relu", "forward") for i in range(10))
        >>> part(ProgramPicture(BlockRow(0, -1, ops)), "0:3-4").counts
        '1 block, 2 ops   0:3-4 of 10 ops'
    """
    match = SPAN.fullmatch(span)
    if match is None:
        raise OpValueError(
            "this is no block and no part of one.", expected="a block 1, or operators 0:12 or 0:12-40", received=span
        )
    block = int(match[1])
    first, last = (None if text is None else int(text) for text in match.groups()[1:])
    inside = {b.index: b for each in picture.blocks for b in each.inside()}
    if block not in inside:
        known = ", ".join(map(str, sorted(inside)))
        raise NotFound(f"there is no block {block}.", expected=f"one of {known}", received=str(block))
    found = inside[block]
    if first is None:
        return ProgramPicture(found, title=f"{picture.title}, block {block}" if block else picture.title)
    ops = tuple(op for op in found.ops if first <= op.index <= (first if last is None else last))
    if not ops:
        expected = f"0 to {len(found.ops) - 1}" if found.ops else "a block with operators"
        raise OpValueError(f"block {block} has no such operators.", expected=expected, received=span)
    note = f"{_span(list(ops))} of {plural(len(found.ops), 'op')}"
    return ProgramPicture(found.only(ops), title=picture.title, note=note)


def fold_chains(picture: ProgramPicture) -> ProgramPicture:
    """Collapse each chain: operators of one role where each is the only reader of what the one before wrote."""
    readers: dict[str, int] = {}
    for op in picture.each():
        for name in {v.name for v in op.reads}:
            readers[name] = readers.get(name, 0) + 1

    def follows(before: OpRow, op: OpRow) -> bool:
        wrote, reads = {v.name for v in before.writes}, {v.name for v in op.reads}
        alone = all(readers.get(name, 0) <= 1 for name in wrote)
        return before.role == op.role and bool(wrote & reads) and alone and not before.folded and not op.folded

    def runs(block: BlockRow) -> Iterator[OpRow]:
        run: list[OpRow] = []
        for op in block.ops:
            if run and not follows(run[-1], op):
                yield from fold_run(run, _span(run))
                run = []
            run.append(op)
        yield from fold_run(run, _span(run))

    return _each(picture, lambda block: replace(block, ops=tuple(runs(block))))


def _in_parts(picture: ProgramPicture, most: int) -> ProgramPicture:
    """Parts of one size, as many as one of them has operators; each of one role, unless these are too many."""
    total = _rows(picture)
    size = max(isqrt(total), -(-total // max(most - len(picture.blocks), 1)), 2)

    def parts(block: BlockRow, apart: bool) -> Iterator[OpRow]:
        run: list[OpRow] = []
        for op in block.ops:
            if len(run) == size or (apart and run and run[-1].role != op.role):
                yield from fold_run(run, _part_title(run))
                run = []
            run.append(op)
        yield from fold_run(run, _part_title(run))

    def cut(apart: bool) -> ProgramPicture:
        return _each(picture, lambda block: replace(block, ops=tuple(parts(block, apart))))

    by_role = cut(True)
    return by_role if _rows(by_role) <= most else cut(False)


def _each(picture: ProgramPicture, change: Callable[[BlockRow], BlockRow]) -> ProgramPicture:
    return replace(picture, root=change(picture.root), loose=tuple(map(change, picture.loose)))


def _part_title(run: list[OpRow]) -> str:
    """Where a part begins and ends, and its first and last layer."""
    names = [op.type for op in run if op.hides]
    return _span(run) + (f"  {names[0]} … {names[-1]}" if len(names) > 1 else "")


def _span(run: list[OpRow]) -> str:
    if not run:
        return ""
    first, last = run[0].index, (run[-1].hides or run)[-1].index
    return f"{run[0].block}:{first}-{last}" if last > first else f"{run[0].block}:{first}"


def _rows(picture: ProgramPicture) -> int:
    return sum(1 for block in picture.blocks for _ in block.walk())


def _noted(whole: ProgramPicture, folded: ProgramPicture) -> ProgramPicture:
    if folded == whole:
        return whole
    words = [whole.note, f"folded to {plural(_rows(folded), 'node')}"]
    return replace(folded, note=", ".join(w for w in words if w))
