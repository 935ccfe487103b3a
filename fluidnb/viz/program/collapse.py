"""Collapses blocks, and runs of operators of one cell or layer, to one summary row each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from fluidnb.op import GRAD
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture, SlotRow, VarRow

#: Values of ``fold``.
FOLDS = ("blocks", "cells", "layers")


def fold_blocks(picture: ProgramPicture) -> ProgramPicture:
    """Collapses nested blocks; the operators that run them show counts."""

    def op(row: OpRow) -> OpRow:
        if row.hides:
            return replace(row, hides=tuple(map(op, row.hides)))
        return replace(row, blocks=(), folded=(*row.folded, *row.blocks)) if row.blocks else row

    return picture.with_blocks(lambda block: replace(block, ops=tuple(map(op, block.ops))))


def fold_runs(picture: ProgramPicture, kind: str) -> ProgramPicture:
    """Collapses runs of two or more operators of one cell, one line (``layers``) or one layer (``names``)."""

    def block(row: BlockRow) -> BlockRow:
        grouped = runs(tuple(map(op, row.ops)), kind)
        return replace(row, ops=tuple(o for title, run in grouped for o in (fold_run(run, title) if title else run)))

    def op(row: OpRow) -> OpRow:
        if not row.blocks and not row.folded:
            return row
        return replace(row, blocks=tuple(map(block, row.blocks)), folded=tuple(map(block, row.folded)))

    return picture.with_blocks(block)


def runs(ops: Sequence[OpRow], kind: str) -> Iterator[tuple[str, list[OpRow]]]:
    """Groups consecutive related operators: (what they have in common, the operators)."""
    belongs = {"cells": _cell, "layers": _layer, "names": _named}[kind]
    for (_, key), group in groupby(ops, lambda o: (o.role, belongs(o))):
        run = list(group)
        yield (_title(kind, run[0]) if key else ""), run


def fold_run(run: Sequence[OpRow], title: str) -> list[OpRow]:
    """Collapses consecutive operators to one row; collapsed rows among them are merged into it."""
    if len(run) < 2:
        return list(run)
    hidden = tuple(o for op in run for o in (op.hides or (op,)))
    first = hidden[0]
    location = first.location if len({op.location for op in hidden}) == 1 else ""
    ins, outs = _passes(hidden)
    return [OpRow(first.block, first.index, title, first.role, ins, outs, location=location, hides=hidden)]


def unfold(picture: ProgramPicture) -> ProgramPicture:
    """Expands everything that is collapsed."""

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

    return picture.with_blocks(block)


def _cell(op: OpRow) -> str:
    """The cell or file of the line of an operator."""
    return op.location.partition(", line")[0].partition(":")[0]


def _layer(op: OpRow) -> str:
    """The user's line, or the layer that named the result: fc_0 of fc_0.tmp_1."""
    named = () if op.hides else (v.name.partition(".")[0] for v in op.writes if "." in v.name)
    return op.location or next(iter(named), "")


def _named(op: OpRow) -> str:
    """The layer that named the result, fc_0 of fc_0.tmp_1; for a gradient operator, that of the forward result."""
    if op.hides:
        return ""
    gradients = [v.name for v in op.reads if GRAD in v.name] if op.role == "backward" else []
    names = [name.partition(GRAD)[0] for name in (*gradients, *(v.name for v in op.writes))]
    return next((name.rpartition(".")[0] or name for name in names), "")


def _title(kind: str, op: OpRow) -> str:
    if kind == "names":
        return _named(op)
    return _cell(op) if kind == "cells" else op.source or _layer(op)


def _passes(ops: Sequence[OpRow]) -> tuple[tuple[SlotRow, ...], tuple[SlotRow, ...]]:
    """Inputs of a run from outside, and all its outputs, the last first."""
    inputs: dict[str, VarRow] = {}
    written: set[str] = set()
    for op in ops:
        inputs.update((v.name, v) for v in op.reads if v.name not in written)
        written.update(v.name for v in op.writes)
    last_first = {v.name: v for op in reversed(ops) for v in op.writes}
    ins, outs = (
        (SlotRow(slot, tuple(variables.values())),) if variables else ()
        for slot, variables in (("X", inputs), ("Out", last_first))
    )
    return ins, outs
