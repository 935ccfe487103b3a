"""The text face of pictures: programs, scopes and tensors as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from fluidnb.values.drawn import draw
from fluidnb.viz.model import BlockRow, OpRow, ProgramPicture, ScopeRow, TensorSummary, VarRow, plural
from fluidnb.viz.spans import Line, columns
from fluidnb.viz.values_reader import sparkline

#: Data and parameters named above the operators, at most.
_NAMED = 12

#: Characters of the bar of an operator's time, where it is all of it.
_BAR = 10

#: Rows of cells, each with a mark.
Rows = Iterator[tuple[str, list[Line]]]


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
    timed = max((len(op.took) for op in picture.each()), default=0)
    body = list(_block_rows(picture.root, limit or 1 << 30, timed))
    for block in picture.loose:
        body.append([[(f"block {block.index}", "bold"), ("  no operator runs it", "dim")]])
        body += _block_rows(block, limit or 1 << 30, timed)
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
           lod [[0, 1, 3]]  [·][··]
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
    indent = " " * (len(summary.name) + 2 if summary.name else 0)
    picture, _ = draw(summary.lod, summary.shape[0] if summary.shape else 0)
    return [line, [(indent, ""), (f"{lod_text(summary.lod)}  {picture}", "dim")]]


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
    more = len(rows) - _NAMED + root.left_parameters
    return rows if more <= 0 else [*rows[:_NAMED], VarRow("…", plural(more, "more variable"))]


def _part(variable: VarRow) -> str:
    return "data" if variable.data else "parameter" if variable.parameter else ""


def _block_rows(block: BlockRow, limit: int, timed: int = 0) -> Iterator[list[Line]]:
    """A row an operator, with its time in front; a heading where the role of the outermost ones changes."""
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
        yield [*took, _op_line(op, depth), _facts(op), [(op.place, "place")]]
    if total > shown:
        yield [[("  ", ""), (f"… {plural(total - shown, 'more op')}", "dim")]]


def foldable_rows(picture: ProgramPicture, limit: int) -> Rows:
    """The rows of a listing that opens and closes: what is folded too, behind the row that stands for it.

    Args:
        picture: the program.
        limit: rows that are shown at most, and as many that are hidden.

    Yields:
        (mark, cells): ``fold`` and ``block`` begin what can be opened (``block`` is open), ``end`` ends it.
    """
    yield "", [[(picture.title, "bold"), ("  " + picture.counts, "dim")]]
    room = [limit, limit]  # for rows that are shown, and for those that are hidden until one opens them

    def rows(ops: tuple[OpRow, ...], depth: int, hidden: bool, roles: bool = False) -> Rows:
        role = ""
        for i, op in enumerate(ops):
            if not room[hidden]:
                left = sum(1 for o in ops[i:] for _ in o.each())
                yield "", [[("  " + "     " * depth, ""), (f"… {plural(left, 'more op')}", "dim")]]
                return
            if roles and op.role != role:
                role = op.role
                yield "", [[(role, role)]]
            room[hidden] -= 1
            # <details> has a sign of its own.
            line = [(text.replace("▸", "·") if style == "dim" else text, style) for text, style in _op_line(op, depth)]
            cells = [line, _facts(op), [(op.place, "place")]]
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


def _facts(op: OpRow) -> Line:
    facts = [v.facts for v in op.writes if v.facts]
    return [(facts[0] if facts else "", "dim")]


def _scope_rows(scope: ScopeRow, depth: int) -> Iterator[list[Line]]:
    pad = "  " * depth
    yield [[(pad + scope.title, "bold"), ("  " + plural(len(scope.held) + scope.more, "variable"), "dim")]]
    for held in scope.held:
        t = held.tensor
        facts = held.kind if t is None else (t.facts + (" " + lod_text(t.lod) if t.lod else "") if t.dtype else "empty")
        stats: Line = []
        if t is not None:
            facts += f"  on {t.where}" if t.where else ""
            stats = [(t.statistics, "warn" if t.nan or t.inf else ""), ("  " + sparkline(t.histogram), "forward")]
        yield [[(f"{pad}  ", ""), (held.name, "name")], [(facts, "")], stats]
    for count, what in ((scope.more, "more variable"), (scope.more_kids, "more scope")):
        if count:
            yield [[(f"{pad}  … {plural(count, what)}", "dim")]]
    for kid in scope.kids:
        yield from _scope_rows(kid, depth + 1)
