"""Text rendering of a debug session: position, next operator, values, watches."""

import linecache
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from fluidnb.debug.breakpoints import Breakpoint
from fluidnb.debug.flow import Flow, forward_of
from fluidnb.debug.history import Access
from fluidnb.debug.nan import Finding
from fluidnb.debug.snapshot import FrameLocation, Snapshot, still_there
from fluidnb.errors import FluidError
from fluidnb.utils.text_width import text_width
from fluidnb.viz.base.styled_text import Line, columns, cut, plural
from fluidnb.viz.base.styled_text import width as size_of
from fluidnb.viz.program.reader import read_op
from fluidnb.viz.session.values import Values
from fluidnb.viz.values.model import TensorSummary
from fluidnb.viz.values.text import statistics_pieces

#: Operators shown before and after the next one.
_AROUND = 3
_NOTHING = Values()
#: Pieces of a row of the listing before its operator: indent, breakpoint, pointer, index. The type is the last but one.
_TYPE = 4
#: Characters of names and arguments in a row at least.
_LEAST = 14


def session_lines(
    snapshot: Snapshot, program: Any, marks: Collection[tuple[int, int]] = (), width: int = 0, around: int = _AROUND,
    values: Values = _NOTHING,
) -> list[Line]:  # fmt: skip
    """The position of a session."""
    lines = [cut(line, width) if width else line for line in (head_line(snapshot), *location_lines(snapshot, program))]
    if snapshot.frames:
        rows, _ = listing(snapshot.frames[-1], program, marks, around)
        lines += _fitted(rows, width)
    lines += error_lines(snapshot)
    return [*lines, *value_lines(snapshot, values, width)]


def head_line(snapshot: Snapshot) -> Line:
    """State, step and reason."""
    style = "warn" if snapshot.error is not None else "optimizer" if snapshot.state == "done" else "bold"
    line: Line = [(snapshot.state, style), (f"  step {snapshot.at:,}", "")]
    if snapshot.run:
        line.append((f"  run {snapshot.run}", ""))
    return [*line, ("  " + snapshot.reason, "dim"), (f"  on {snapshot.device}" if snapshot.device else "", "dim")]


def location_lines(snapshot: Snapshot, program: Any) -> list[Line]:
    """The enclosing blocks with iterations, and the user's line; for a gradient also its forward line."""
    lines: list[Line] = []
    path: Line = [("  ", "")]
    for around, frame in pairwise(snapshot.frames):
        kind = "" if around.op is None else f"{around.op.block}:{around.op.index} {around.op.type}"
        path += [(kind, ""), (f"  ›  block {frame.block}, iteration {frame.iteration}  ", "bold")]
        lines = [path]
    if snapshot.op is not None and snapshot.op.where:
        source = linecache.getline(snapshot.op.file, snapshot.op.line).strip()
        lines.append([(f"  {snapshot.op.where}  ", "location"), (source, "")])
    op = None if snapshot.op is None else still_there(snapshot.op, program)
    forward = None if op is None else forward_of(op, (op for block in program.desc.blocks for op in block.ops))
    if forward is not None:
        about = read_op(forward)
        lines.append([
            ("  gradient of ", "dim"), (about.type, "forward"), (f"  {about.location}  ", "location"),
            (about.source, ""),
        ])  # fmt: skip
    return lines


def error_lines(snapshot: Snapshot) -> list[Line]:
    """The error of the next operator, without what the listing shows."""
    if snapshot.error is None:
        return []
    if isinstance(snapshot.error, FluidError):
        rows = snapshot.error.text(without=("op", "in", "at")).splitlines()
    else:
        rows = [f"{type(snapshot.error).__name__}: {snapshot.error}"]
    return [[("  " + row, "" if i else "warn")] for i, row in enumerate(rows)]


def value_lines(snapshot: Snapshot, values: Values = _NOTHING, width: int = 0, reads: bool = False) -> list[Line]:
    """The outputs of the last step, the inputs of the next operator, and the watches."""
    rows: list[list[Line]] = []
    rows += _values("wrote", values.wrote)
    if values.wrote:
        if values.more:
            rows.append([[("         ", ""), (f"… {plural(values.more, 'more variable')}", "dim")]])
    elif snapshot.wrote and values is _NOTHING:
        rows.append([[("  wrote  ", "dim"), (", ".join(snapshot.wrote), "name")]])
    if reads or snapshot.error is not None:
        written = {summary.name for summary in values.wrote}
        rows += _values("reads", (summary for summary in values.reads if summary.name not in written))
    rows += _values("fetch", values.fetched)
    rows += [[[("  watch  ", "dim"), (text, "name")], [(value, "")]] for text, value in snapshot.watches]
    return columns(rows, width)


def _values(what: str, tensors: Iterable[TensorSummary]) -> Iterator[list[Line]]:
    for t in tensors:
        yield [[(f"  {what}  ", "dim"), (t.name, "name")], [(t.facts, "dim"), *statistics_pieces(t)]]


def listing(
    frame: FrameLocation, program: Any, marks: Collection[tuple[int, int]] = (), around: int = _AROUND
) -> tuple[list[list[Line]], int]:
    """The operators around the position of a frame, as rows of cells."""
    blocks = program.desc.blocks
    ops = blocks[frame.block].ops if frame.block < len(blocks) else []
    if frame.op is not None and still_there(frame.op, program) is None:
        return [[[("  ▶ ", "warn"), (frame.op.text, "")], [("as it ran; the program was changed since", "dim")]]], 0
    at = len(ops) if frame.op is None else frame.pc
    first = max(0, at - around)
    rows: list[list[Line]] = []
    for i in range(first, min(len(ops), at + around + 1)):
        row = read_op(frame.changed.get(i, ops[i]), i)
        mark = ("●", "backward") if (frame.block, i) in marks else (" ", "")
        pointer = ("▶", "warn") if i == at else (" ", "")
        text: Line = [(row.left, "name"), (" = ", ""), (row.type, row.role)] if row.outs else [(row.type, row.role)]
        rows.append([
            [(" ", ""), mark, pointer, (f" {i:<3}", "dim"), *text, (f"({row.arguments})", "")],
            [(row.facts, "dim")], [(row.location, "location")],
        ])  # fmt: skip
    if frame.op is None:
        rows.append([[("  ▶ ", "warn"), ("the end of the block", "dim")]])
    return rows, at - first


def _fitted(rows: list[list[Line]], width: int) -> list[Line]:
    """Fits a listing to a width; operator types are never cut."""
    table = [row for row in rows if len(row) > 1 and len(row[0]) > _TYPE]
    if not width or len(table) < sum(len(row) > 1 for row in rows):
        return columns(rows, width)
    beside = max((size_of(row[1]) + size_of(row[2]) for row in table), default=0) + 4
    least = max((size_of(row[0][:_TYPE]) + text_width(row[0][-2][0]) for row in table), default=0) + _LEAST
    size = min(max(width - beside, least), width)
    fitted = [[_fit(row[0], size), *row[1:]] if len(row) > 1 else row for row in rows]
    return columns(fitted, width, keep=1)


def _fit(line: Line, size: int) -> Line:
    """Fits a row to a number of characters; names and arguments are cut, the operator type is not."""
    over = size_of(line) - size
    if over <= 0:
        return line
    *left, kind, (arguments, style) = line[_TYPE:]  # output names, the equals sign, the type, the arguments
    names = left[:1]
    for_arguments = max(len(arguments) - over, min(len(arguments), 4))
    over -= len(arguments) - for_arguments
    if over > 0 and names:
        names = cut(names, max(len(names[0][0]) - over, 1))
    shown = arguments if for_arguments == len(arguments) else arguments[: for_arguments - 2] + "…)"
    return [*line[:_TYPE], *names, *left[1:], kind, (shown, style)]


def breakpoint_lines(breakpoints: Sequence[Breakpoint]) -> list[Line]:
    """A table of breakpoints."""
    if not breakpoints:
        return [[("no breakpoints", "dim")]]
    rows: list[list[Line]] = []
    for b in breakpoints:
        hits = f"hit {plural(b.hits, 'time')}"
        rows.append([[(f"{b.number:>3}", "dim")], [(b.text, "" if b.enabled else "dim")], [(hits, "dim")]])
    return columns(rows)


def history_lines(accesses: Sequence[Access], width: int = 0) -> list[Line]:
    """The history of a variable in a run."""
    if not accesses:
        return [[("not read or written so far", "dim")]]
    rows = []
    for t in accesses:
        at = f"  iteration {'.'.join(map(str, t.iterations))}" if t.iterations else ""
        value = "" if t.norm is None else f"norm {t.norm:.4g}"
        rows.append([
            [(f"{t.at:>6}  ", "dim"), (t.role, t.role)], [(t.how, "")], [(t.name, "name")],
            [(f"{t.op.block}:{t.op.index} {t.op.type}{at}", "")], [(value, "")], [(t.op.where, "location")],
        ])  # fmt: skip
    return columns(rows, width)


def finding_lines(finding: Finding | None) -> list[Line]:
    """The result of a NaN search; None without NaN."""
    if finding is None:
        return [[("all values are finite", "optimizer")]]
    (head, _), *rest = finding.rows
    return [[(head, "bold")], *([(row, "warn" if bad else "")] for row, bad in rest)]


def flow_lines(flows: Sequence[Flow], width: int = 0) -> list[Line]:
    """Gradient flow: a line for each parameter, with a bar on a logarithmic scale."""
    if not flows:
        return [[("no parameters", "dim")]]
    counts = Counter(flow.verdict for flow in flows)
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    rows: list[list[Line]] = [[[(plural(len(flows), "parameter"), "bold"), (f": {summary}", "")]]]
    for flow in flows:
        fine = flow.verdict == "fine"
        share = "" if flow.gradient is None or flow.verdict == "NaN" else f"{flow.share:.2g}"
        bar = "▏" if flow.share == math.inf else ""
        if 0 < flow.share < math.inf:  # ten characters from 1e-8 to 100
            bar = "█" * max(1, min(10, round(math.log10(flow.share) + 8)))
        spot = flow.forward or flow.blocker
        words = [] if spot is None else [spot.text.partition(" = ")[0] if " = " in spot.text else "", spot.where]
        origin = ", ".join(filter(None, words))
        rows.append([
            [("  " + flow.parameter, "name")], [(flow.verdict, "optimizer" if fine else "warn")], [(share, "")],
            [(bar, "backward")], [(flow.why, ""), (f"  ({origin})" if origin else "", "location")],
        ])  # fmt: skip
    return columns(rows, width)
