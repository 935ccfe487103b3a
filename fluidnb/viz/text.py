"""The text face of pictures: programs, scopes and tensors as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from fluidnb.viz.model import BlockRow, OpRow, ProgramPicture, ScopeRow, TensorSummary, VarRow, plural
from fluidnb.viz.spans import Line, columns
from fluidnb.viz.values_reader import sparkline

#: Data and parameters named above the operators, at most.
_NAMED = 12


def program_lines(picture: ProgramPicture, width: int = 0, limit: int = 0) -> list[Line]:
    """A program as a listing: data and parameters, then the operators, nested blocks indented.

    Args:
        picture: the program.
        width: characters a line may have; 0 for any number.
        limit: operators shown at most; 0 for all.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.viz.spans import plain
        >>> op = OpRow(0, 0, "relu", "forward", place="cell net, line 2")
        >>> print(plain(program_lines(ProgramPicture(BlockRow(0, -1, (op,))))))
        program  1 block, 1 op
        forward
          0  relu()    cell net, line 2
    """
    head: Line = [(picture.title, "bold"), ("  " + picture.counts, "dim")]
    rows = [[[("  ", ""), (v.name, "name")], [(v.facts, "")], [(_part(v), "dim")]] for v in _named(picture.root)]
    body = list(_block_rows(picture.root, limit or 1 << 30))
    for block in picture.loose:
        body.append([[(f"block {block.index}", "bold"), ("  no operator runs it", "dim")]])
        body += _block_rows(block, limit or 1 << 30)
    return [head, *columns(rows, width), *columns(body, width)]


def scope_lines(scope: ScopeRow, width: int = 0) -> list[Line]:
    """A tree of scopes: what each holds, with statistics of tensors.

    Args:
        scope: the outermost one.
        width: characters a line may have; 0 for any number.

    Returns:
        The lines.
    """
    return columns(_scope_rows(scope, 0), width)


def tensor_lines(summary: TensorSummary) -> list[Line]:
    """A tensor in a line or two: name, dtype and shape, LoD, statistics, and where it is.

    Args:
        summary: the tensor.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.viz.spans import plain
        >>> print(plain(tensor_lines(TensorSummary("x", "int64", (3,), ((0, 1, 3),), values="[7, 8, 9]"))))
        x  int64[3]  [7, 8, 9]
           lod [[0, 1, 3]]
    """
    lead: Line = [(summary.name + "  ", "name")] if summary.name else []
    line = [*lead, (summary.facts if summary.dtype else "holds nothing yet", "")]
    if summary.statistics:
        line.append(("  " + summary.statistics, "warn" if summary.nan or summary.inf else ""))
    if summary.histogram:
        line.append(("  " + sparkline(summary.histogram), "forward"))
    if summary.where:
        line.append(("  on " + summary.where, "dim"))
    if not summary.lod:
        return [line]
    return [line, [(" " * (len(summary.name) + 2 if summary.name else 0), ""), (lod_text(summary.lod), "dim")]]


def op_lines(op: OpRow) -> list[Line]:
    """An operator in a line: what it computes, from what, and the user's line that made it.

    Args:
        op: the operator.

    Returns:
        One line.
    """
    return [[*_op_line(op, 0)[2:], ("  ", ""), *_facts(op), ("  ", ""), (op.place, "place")]]


def lod_text(lod: tuple[tuple[int, ...], ...], most: int = 12) -> str:
    """Offsets as text, long levels cut.

    Example:
        >>> lod_text(((0, 2, 5),)), lod_text(((0, 1, 2, 3),), most=2)
        ('lod [[0, 2, 5]]', 'lod [[0, 1, ... 4 offsets]]')
    """
    levels = []
    for level in lod:
        shown = [str(i) for i in level[:most]]
        if len(level) > most:
            shown.append(f"... {len(level)} offsets")
        levels.append(f"[{', '.join(shown)}]")
    return f"lod [{', '.join(levels)}]"


def _named(root: BlockRow) -> list[VarRow]:
    rows = [v for v in root.vars if v.data or v.parameter]
    if len(rows) <= _NAMED:
        return rows
    return [*rows[:_NAMED], VarRow("…", plural(len(rows) - _NAMED, "more variable"))]


def _part(variable: VarRow) -> str:
    return "data" if variable.data else "parameter" if variable.parameter else ""


def _block_rows(block: BlockRow, limit: int) -> Iterator[list[Line]]:
    """A row an operator; a heading where the role of the outermost ones changes."""
    role, shown = "", 0
    total = sum(1 for _ in block.walk())
    entered: set[int] = {block.index}
    for depth, op in block.walk():
        if shown == limit:
            yield [[("  ", ""), (f"… {plural(total - limit, 'more op')}", "dim")]]
            return
        if depth == 0 and op.role != role:
            role = op.role
            yield [[(role, role)]]
        if op.block not in entered:
            entered.add(op.block)
            yield [[("  " + "     " * (depth - 1) + "   ", ""), (f"block {op.block}", "dim")]]
        shown += 1
        yield [_op_line(op, depth), _facts(op), [(op.place, "place")]]


def _op_line(op: OpRow, depth: int) -> Line:
    line: Line = [("  " + "     " * depth, ""), (f"{op.index:<3}", "dim")]
    if op.outs:
        line += [(op.left, "name"), (" = ", "")]
    return [*line, (op.type, op.role), (f"({op.arguments})", "")]


def _facts(op: OpRow) -> Line:
    facts = [v.facts for v in op.writes if v.facts]
    return [(facts[0] if facts else "", "dim")]


def _scope_rows(scope: ScopeRow, depth: int) -> Iterator[list[Line]]:
    pad = "  " * depth
    yield [[(pad + scope.title, "bold"), ("  " + plural(len(scope.held), "variable"), "dim")]]
    for held in scope.held:
        t = held.tensor
        facts = held.kind if t is None else (t.facts + (" " + lod_text(t.lod) if t.lod else "") if t.dtype else "empty")
        stats: Line = []
        if t is not None:
            stats = [(t.statistics, "warn" if t.nan or t.inf else ""), ("  " + sparkline(t.histogram), "forward")]
        yield [[(f"{pad}  ", ""), (held.name, "name")], [(facts, "")], stats]
    for kid in scope.kids:
        yield from _scope_rows(kid, depth + 1)
