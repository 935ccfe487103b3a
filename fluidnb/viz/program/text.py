"""Text rendering of programs."""

from __future__ import annotations

from collections.abc import Iterator

from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture, VarRow

#: Data and parameters listed above the operators at most.
_NAMED = 12
#: Characters of the time bar of an operator with a share of 1.
_BAR = 10
#: Rows of cells, each with a mark.
Rows = Iterator[tuple[str, list[Line]]]


def program_lines(picture: ProgramPicture, width: int = 0, limit: int = 0) -> list[Line]:
    """A program as a listing: data and parameters, then up to ``limit`` operators, nested blocks indented."""
    head: Line = [(picture.title, "bold"), ("  " + picture.counts, "dim")]
    rows: list[list[Line]] = []
    for v in _named(picture.root):
        part = "data" if v.data else "parameter" if v.parameter else ""
        rows.append([[("  ", ""), (v.name, "name")], [(v.facts, "")], [(part, "dim")]])
    timed = max((len(op.took) for op in picture.each()), default=0)
    body = list(_block_rows(picture.root, limit or 1 << 30, timed))
    for block in picture.loose:
        body.append([[(f"block {block.index}", "bold"), ("  no operator runs it", "dim")]])
        body += _block_rows(block, limit or 1 << 30, timed)
    return [head, *columns(rows, width), *columns(body, width)]


def op_lines(op: OpRow) -> list[Line]:
    """An operator in one line with the user's line that created it."""
    return [[*_op_line(op, 0)[2:], ("  ", ""), (op.facts, "dim"), ("  ", ""), (op.location, "location")]]


def _named(root: BlockRow) -> list[VarRow]:
    rows = [v for v in root.vars if v.data or v.parameter]
    more = len(rows) - _NAMED + root.left_parameters
    return rows if more <= 0 else [*rows[:_NAMED], VarRow("…", plural(more, "more variable"))]


def _block_rows(block: BlockRow, limit: int, timed: int = 0) -> Iterator[list[Line]]:
    """A row for each operator, with its time if measured; a heading where the role changes."""
    role, shown = "", 0
    total = sum(1 for _ in block.walk()) + sum(b.left for b in block.inside())
    entered: set[int] = {block.index}
    for depth, op in block.walk():
        if shown == limit:
            break
        if depth == 0 and op.role != role:
            role = op.role
            yield [[(role, role)]]
        if op.block not in entered:
            entered.add(op.block)
            yield [[("  " + "     " * (depth - 1) + "   ", ""), (f"block {op.block}", "dim")]]
        shown += 1
        took: list[Line] = [[(f"{op.took:>{timed}}  {'█' * round(_BAR * op.share):<{_BAR}}", op.role)]] if timed else []
        yield [*took, _op_line(op, depth), [(op.facts, "dim")], [(op.location, "location")]]
    if total > shown:
        yield [[("  ", ""), (f"… {plural(total - shown, 'more op')}", "dim")]]


def foldable_rows(picture: ProgramPicture, limit: int) -> Rows:
    """The rows of a collapsible listing; marks: ``fold`` and ``block`` (open) begin a group, ``end`` ends it."""
    yield "", [[(picture.title, "bold"), ("  " + picture.counts, "dim")]]
    remaining = [limit, limit]  # of shown and of hidden rows

    def rows(ops: tuple[OpRow, ...], depth: int, hidden: bool, roles: bool = False) -> Rows:
        role = ""
        for i, op in enumerate(ops):
            if not remaining[hidden]:
                left = sum(1 for o in ops[i:] for _ in o.each())
                yield "", [[("  " + "     " * depth, ""), (f"… {plural(left, 'more op')}", "dim")]]
                return
            if roles and op.role != role:
                role = op.role
                yield "", [[(role, role)]]
            remaining[hidden] -= 1
            # <details> draws its own marker
            line = [(text.replace("▸", "·") if style == "dim" else text, style) for text, style in _op_line(op, depth)]
            cells = [line, [(op.facts, "dim")], [(op.location, "location")]]
            yield ("fold" if op.hides or op.folded else "block" if op.blocks else ""), cells
            yield from rows(op.hides, depth + 1, True)
            for block in (*op.blocks, *op.folded):
                yield "", [[("  " + "     " * depth + "   ", ""), (f"block {block.index}", "dim")]]
                yield from rows(block.ops, depth + 1, hidden or bool(op.folded))
            if op.hides or op.folded or op.blocks:
                yield "end", []

    yield from rows(picture.root.ops, 0, False, True)
    for block in picture.loose:
        yield "", [[(f"block {block.index}", "bold"), ("  no operator runs it", "dim")]]
        yield from rows(block.ops, 1, False)


def _op_line(op: OpRow, depth: int) -> Line:
    return [("  " + "     " * depth, ""), (f"{op.index:<2} ", "dim"), *op.pieces]
