"""A program as a compact table for the page of a widget: each text and variable stored once."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from fluidnb.op import GRAD
from fluidnb.viz.program.collapse import runs
from fluidnb.viz.program.model import ROLES, BlockRow, OpRow, ProgramPicture, SlotRow, VarRow

#: Kinds of runs of operators.
RUNS = ("cells", "layers")
Slots = list[list[int]]


@dataclass(frozen=True, slots=True)
class ProgramTable:
    """A program whose texts are indices into `words`.

    Args:
        rows: of each operator: block, index, depth, type, role (index in `ROLES`), inputs, outputs, attributes,
            location, line, row of its forward operator (-1 for none). A slot is its name and its variables; an
            attribute its name and its text.
    """

    title: str
    counts: str  # number of blocks, operators and parameters in words
    words: list[str] = field(default_factory=list)  # texts: types, slots, attributes, places, lines
    # of each variable: name, facts, kind (``data``, ``parameter``, ``kept`` or empty), block, location
    vars: list[list[Any]] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    # ``cells`` and ``layers`` -> of each run of two operators or more: first row, last row, what they have in common
    runs: dict[str, list[list[int]]] = field(default_factory=dict)
    loose: list[list[int]] = field(default_factory=list)  # (first row, block) of the blocks that no operator runs
    left: int = 0  # number of operators that were not read


def read_table(picture: ProgramPicture) -> ProgramTable:
    """Converts a picture to a table; collapsed rows are expanded."""
    return _Table(picture).table


def table_json(picture: ProgramPicture) -> bytes:
    """A picture's table as JSON, in bytes: widgets would quote a text once more."""
    table = read_table(picture)
    plain = {field.name: getattr(table, field.name) for field in fields(ProgramTable)}
    return json.dumps(plain, separators=(",", ":")).encode()


class _Table:
    """Fills a table."""

    def __init__(self, picture: ProgramPicture) -> None:
        left = sum(inner.left for block in picture.blocks for inner in block.inside())
        self.table = table = ProgramTable(picture.title, picture.counts, left=left)
        table.runs.update((kind, []) for kind in RUNS)
        self._words: dict[str, int] = {}
        self._vars: dict[int, int] = {}
        self._known: dict[VarRow, int] = {}
        self._written: dict[tuple[str, str], int] = {}
        self._word("")
        for block in picture.blocks:
            if block is not picture.root:
                table.loose.append([len(table.rows), block.index])
            self._block(block, 0)

    def _block(self, block: BlockRow, depth: int) -> None:
        ops = [op for row in block.ops for op in (row.hides or (row,))]
        spans: list[tuple[int, int]] = []
        for op in ops:
            first = len(self.table.rows)
            self._op(op, depth)
            for inner in (*op.blocks, *op.folded):
                self._block(inner, depth + 1)
            spans.append((first, len(self.table.rows) - 1))
        for kind in RUNS:
            at = 0
            for title, run in runs(ops, kind):
                if title and len(run) > 1:
                    last = spans[at + len(run) - 1][1]
                    self.table.runs[kind].append([spans[at][0], last, self._word(title)])
                at += len(run)

    def _op(self, op: OpRow, depth: int) -> None:
        if op.role == "forward":
            for var in op.writes:
                self._written.setdefault((op.type, var.name), len(self.table.rows))
        attrs = [[self._word(name), self._word(text)] for name, text in op.attrs]
        self.table.rows.append([
            op.block, op.index, depth, self._word(op.type), ROLES.index(op.role), self._slots(op.ins),
            self._slots(op.outs), attrs, self._word(op.location), self._word(op.source), self._forward(op),
        ])  # fmt: skip

    def _forward(self, op: OpRow) -> int:
        """The row of the forward operator: it wrote an input, or the variable of an input gradient."""
        if not op.type.endswith("_grad"):
            return -1
        kind = op.type.removesuffix("_grad")
        about = {var.name.partition(GRAD)[0] for var in op.reads}
        return min((self._written[kind, name] for name in about if (kind, name) in self._written), default=-1)

    def _slots(self, slots: Iterable[SlotRow]) -> Slots:
        return [[self._word(slot.name), *map(self._var, slot.vars)] for slot in slots]

    def _var(self, var: VarRow) -> int:
        number = self._vars.get(id(var))  # mostly the same object: cheaper than comparing fields
        if number is None:
            number = self._known.get(var)
            if number is None:
                number = self._known[var] = len(self.table.vars)
                kind = "data" if var.data else "parameter" if var.parameter else "kept" if var.persistable else ""
                self.table.vars.append([var.name, var.facts, kind, var.block, var.location])
            self._vars[id(var)] = number
        return number

    def _word(self, text: str) -> int:
        if text not in self._words:
            self._words[text] = len(self.table.words)
            self.table.words.append(text)
        return self._words[text]
