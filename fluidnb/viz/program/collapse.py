"""Folding: blocks, and runs of operators of one cell or layer, become one row each that says what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from fluidnb.op import GRAD
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture, SlotRow, VarRow

#: What can be folded.
FOLDS = ("blocks", "cells", "layers")


def fold_blocks(picture: ProgramPicture) -> ProgramPicture:
    """The blocks that operators run are folded away; the operators stay, with counts.

    Example:
        >>> from fluidnb.viz.program.model import OpRow
        >>> loop = OpRow(0, 0, "while", "forward", blocks=(BlockRow(1, 0, (OpRow(1, 0, "increment", "forward"),)),))
        >>> fold_blocks(ProgramPicture(BlockRow(0, -1, (loop,)))).root.ops[0].hidden
        '1 op in block 1'
    """

    def op(row: OpRow) -> OpRow:
        if row.hides:
            return replace(row, hides=tuple(map(op, row.hides)))
        return replace(row, blocks=(), folded=(*row.folded, *row.blocks)) if row.blocks else row

    return _each_block(picture, lambda block: replace(block, ops=tuple(map(op, block.ops))))


def fold_runs(picture: ProgramPicture, kind: str) -> ProgramPicture:
    """Runs of two operators or more that belong together become one row, in every block.

    Args:
        kind: ``cells``, ``layers`` (of one line) or ``names`` (of one layer, also where a line makes several).

    Example:
        >>> ops = tuple(OpRow(0, i, "relu", "forward", place=f"cell net, line {i}") for i in range(3))
        >>> fold_runs(ProgramPicture(BlockRow(0, -1, ops)), "cells").root.ops[0].text
        'cell net  3 ops'
    """

    def block(row: BlockRow) -> BlockRow:
        found = runs(tuple(map(op, row.ops)), kind)
        return replace(row, ops=tuple(o for title, run in found for o in (fold_run(run, title) if title else run)))

    def op(row: OpRow) -> OpRow:
        if not row.blocks and not row.folded:
            return row
        return replace(row, blocks=tuple(map(block, row.blocks)), folded=tuple(map(block, row.folded)))

    return _each_block(picture, block)


def runs(ops: Sequence[OpRow], kind: str) -> Iterator[tuple[str, list[OpRow]]]:
    """Operators that follow each other and belong together.

    Args:
        kind: ``cells``, ``layers`` or ``names``; see `fold_runs`.

    Example:
        >>> ops = [OpRow(0, i, "relu", "forward", place=f"cell net, line {1 + i // 2}") for i in range(3)]
        >>> [(title, len(run)) for title, run in runs(ops, "layers")]
        [('cell net, line 1', 2), ('cell net, line 2', 1)]
    """
    belongs = {"cells": _cell, "layers": _layer, "names": _named}[kind]
    for (_, key), group in groupby(ops, lambda o: (o.role, belongs(o))):
        run = list(group)
        yield (_title(kind, run[0]) if key else ""), run


def fold_run(run: Sequence[OpRow], title: str) -> list[OpRow]:
    """One row for operators that follow each other; what is a fold already is opened into it.

    Example:
        >>> [fold] = fold_run([OpRow(0, 3, "mul", "forward"), OpRow(0, 4, "relu", "forward")], "net")
        >>> fold.index, fold.hidden, fold.types
        (3, '2 ops', 'mul, relu')
    """
    if len(run) < 2:
        return list(run)
    hidden = tuple(o for op in run for o in (op.hides or (op,)))
    first = hidden[0]
    places = {op.place for op in hidden}
    place = first.place if len(places) == 1 else ""
    ins, outs = _passes(hidden)
    return [OpRow(first.block, first.index, title, first.role, ins, outs, place=place, hides=hidden)]


def unfold(picture: ProgramPicture) -> ProgramPicture:
    """A picture with nothing folded.

    Example:
        >>> whole = ProgramPicture(BlockRow(0, -1, tuple(OpRow(0, i, "relu", "forward") for i in range(3))))
        >>> unfold(fold_blocks(whole)) == whole
        True
    """

    def ops(rows: Sequence[OpRow]) -> Iterator[OpRow]:
        for row in rows:
            if row.hides:
                yield from ops(row.hides)
            elif row.blocks or row.folded:
                yield replace(row, blocks=tuple(map(block, (*row.blocks, *row.folded))), folded=())
            else:
                yield row

    def block(row: BlockRow) -> BlockRow:
        return replace(row, ops=tuple(ops(row.ops)))

    return _each_block(picture, block)


def _each_block(picture: ProgramPicture, change: Callable[[BlockRow], BlockRow]) -> ProgramPicture:
    return replace(picture, root=change(picture.root), loose=tuple(map(change, picture.loose)))


def _cell(op: OpRow) -> str:
    """The cell, or the file, of an operator's line."""
    return op.place.partition(", line")[0].partition(":")[0]


def _layer(op: OpRow) -> str:
    """The user's line; where it is not known, the layer that gave the result its name, as fc_0 in fc_0.tmp_1."""
    named = () if op.hides else (v.name.partition(".")[0] for v in op.writes if "." in v.name)
    return op.place or next(iter(named), "")


def _named(op: OpRow) -> str:
    """The layer that gave what an operator writes its name: fc_0 of fc_0.tmp_1; of a gradient operator, whose gradient
    it takes."""
    if op.hides:
        return ""
    taken = [v.name for v in op.reads if GRAD in v.name] if op.role == "backward" else []
    names = [name.partition(GRAD)[0] for name in (*taken, *(v.name for v in op.writes))]
    return next((name.rpartition(".")[0] or name for name in names), "")


def _title(kind: str, op: OpRow) -> str:
    if kind == "names":
        return _named(op)
    return _cell(op) if kind == "cells" else op.source or _layer(op)


def _passes(ops: Sequence[OpRow]) -> tuple[tuple[SlotRow, ...], tuple[SlotRow, ...]]:
    """What a run takes from outside, and all that it writes, the last first."""
    taken: dict[str, VarRow] = {}
    made: set[str] = set()
    for op in ops:
        taken.update((v.name, v) for v in op.reads if v.name not in made)
        made.update(v.name for v in op.writes)
    last_first = {v.name: v for op in reversed(ops) for v in op.writes}
    return _slot("X", taken), _slot("Out", last_first)


def _slot(name: str, found: dict[str, VarRow]) -> tuple[SlotRow, ...]:
    return (SlotRow(name, tuple(found.values())),) if found else ()
