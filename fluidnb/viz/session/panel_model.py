"""The debugger panel as plain data: listing, position, breakpoints."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fluidnb.debug.breakpoints import Breakpoint
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.snapshot import OpLocation, Snapshot, op_location
from fluidnb.debug.writes import wrote
from fluidnb.program.op_roles import role_of
from fluidnb.runtime.compile.lowering import LoweredOp, LoweredProgram
from fluidnb.viz.base.styled_text import Line, Span
from fluidnb.viz.program.model import OpRow, ProgramPicture
from fluidnb.viz.program.reader import read_program
from fluidnb.viz.session.text import error_lines

#: Lines of the user's code before and after the one that appended an operator.
_SOURCE_LINES = 12

#: (block, index) of an operator.
Spot = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ListedOp:
    """A row of the listing.

    Args:
        depth: nesting depth of its block.
        block: index of its block.
        index: its index in the block; -1 for the title of a block that no operator runs.
        role: forward, backward or optimizer; empty for a title.
        pieces: its text.
        facts: dtype and shape of its output.
        place: the user's line.
    """

    depth: int
    block: int
    index: int
    role: str
    pieces: tuple[Span, ...]
    facts: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """All operators of a program, nested blocks after the operator that runs them.

    Args:
        counts: number of operators in words.
        rows: the rows.
    """

    counts: str
    rows: tuple[ListedOp, ...]


@dataclass(frozen=True, slots=True)
class FrameLine:
    """A scope from the outermost one to the position of the session.

    Args:
        title: its title.
        at: the current operator in words; empty for the outermost scope.
        block: the block; -1 for the outermost scope.
        index: index of the current operator; -1 at the end of the block.
    """

    title: str
    at: str = ""
    block: int = -1
    index: int = -1


@dataclass(frozen=True, slots=True)
class SourceLines:
    """The user's code around the line that appended an operator.

    Args:
        first: number of the first line.
        lines: the lines.
        line: number of the line that appended it.
    """

    first: int
    lines: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class SessionPosition:
    """The position of a session.

    Args:
        state: as in `Snapshot`.
        reason: why it stopped there.
        at: steps from the beginning.
        reached: steps to the furthest position.
        first: the first step of the tape.
        runs: the first step of each run.
        here: the next operator; None at the end of a block.
        ran: the operator that the last step ran; None where there is none.
        wrote: the variables that the last step wrote.
        reads: the variables that the next operator reads.
        frames: the scopes from the outermost inwards.
        place: the user's line.
        error: the error of the next operator.
        can_back: whether there is a step to undo.
        device: the device with its name; empty on the host.
        source: the user's code that appended the next operator; None where it cannot be read.
    """

    state: str = "idle"
    reason: str = ""
    at: int = 0
    reached: int = 0
    first: int = 0
    runs: tuple[int, ...] = ()
    here: Spot | None = None
    ran: Spot | None = None
    wrote: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    frames: tuple[FrameLine, ...] = ()
    place: str = ""
    error: tuple[Line, ...] = ()
    can_back: bool = False
    device: str = ""
    source: SourceLines | None = None


@dataclass(frozen=True, slots=True)
class BreakpointRow:
    """A breakpoint.

    Args:
        number: its number.
        text: its description.
        hits: number of hits.
        spot: its operator if it is set at one; None for other kinds.
        ops: the operators at which it may stop; empty where that depends on values alone.
    """

    number: int
    text: str
    hits: int
    spot: Spot | None
    ops: tuple[Spot, ...] = ()


def read_listing(program: Any) -> Listing:
    """Reads a program as the rows of a listing.

    Example:
        >>> y = fluid.layers.relu(fluid.layers.fill_constant([2], "float32", 1.0))
        >>> [(row.index, row.role, row.facts) for row in read_listing(fluid.default_main_program()).rows]
        [(0, 'forward', 'float32[2]'), (1, 'forward', 'float32[2]')]
    """
    picture: ProgramPicture = read_program(program)
    rows = [_row(depth, op) for depth, op in picture.root.walk()]
    for block in picture.loose:
        rows += _titled(block.index, [_row(depth, op) for depth, op in block.walk(1)])
    return Listing(picture.counts, tuple(rows))


def plan_listing(plan: LoweredProgram) -> Listing:
    """The compiled operators of a run whose program was changed since, block by block."""
    rows: list[ListedOp] = []
    for block in plan.blocks:
        listed = [_spot_row(op_location(op), role_of(op.desc), min(block.index, 1)) for op in block.ops]
        rows += listed if block.index == 0 else _titled(block.index, listed, "")
    return Listing(f"{len(rows):,} rows", tuple(rows))


def has_changed(plan: LoweredProgram) -> bool:
    """Whether the program was changed since it was compiled.

    Example:
        >>> y = fluid.layers.fill_constant([2], "float32", 1.0)
        >>> d = fluid.debug(feed={}); before = d.inspect(lambda w: has_changed(w.tape.machine.plan))
        >>> z = fluid.layers.relu(y); after = d.inspect(lambda w: has_changed(w.tape.machine.plan)); d.close()
        >>> before, after
        (False, True)
    """
    if plan.version == plan.desc.version:
        return False
    blocks = plan.desc.blocks
    if len(blocks) != len(plan.blocks):
        return True
    for now, then in zip(blocks, plan.blocks, strict=True):
        ops = [op for op in now.ops if op.optype not in ("feed", "fetch")]
        if len(ops) != len(then.ops) or any(a is not b.desc for a, b in zip(ops, then.ops, strict=True)):
            return True
    return False


def read_position(debugger: Debugger, snapshot: Snapshot) -> SessionPosition:
    """Reads the position of a session.

    Example:
        >>> y = fluid.layers.relu(fluid.layers.fill_constant([2], "float32", 1.0))
        >>> d = fluid.debug(feed={}); at = d.step(); s = d.inspect(read_position, at); d.close()
        >>> s.here, s.ran, s.wrote, [f.title for f in s.frames]
        ((0, 1), (0, 0), ('fill_constant_0.tmp_0',), ["user's scope", 'block 0'])
    """
    tape = debugger.tape
    state = (snapshot.state, snapshot.reason, snapshot.at, snapshot.reached, tape.forgotten)
    runs = tuple(run.first for run in (*tape.runs, *reversed(tape.ahead)))
    frames = _frames(snapshot) if tape.runs else ()
    here = snapshot.op
    spot = None if here is None else (here.block, here.index)
    if snapshot.state == "running" or not tape.runs:
        return SessionPosition(*state, runs, spot, frames=frames, can_back=snapshot.can_back, device=snapshot.device)
    ran, written = _last_step(debugger)
    machine = tape.machine
    return SessionPosition(
        *state, runs, spot, ran, written, () if machine.here is None else tuple(dict.fromkeys(machine.here.reads())),
        frames, _words(here), tuple(error_lines(snapshot)), snapshot.can_back, snapshot.device, _source(here),
    )  # fmt: skip


def read_breakpoints(breakpoints: Sequence[Breakpoint], plan: LoweredProgram | None) -> tuple[BreakpointRow, ...]:
    """Breakpoints as plain data, in the order of creation.

    Example:
        >>> from fluidnb.debug.breakpoints import parse
        >>> stop = parse("at 0:12"); stop.number = 1
        >>> read_breakpoints([stop, parse("relu")], None)
        (BreakpointRow(number=1, text='at 0:12', hits=0, spot=(0, 12), ops=((0, 12),)),)
    """
    ops = [] if plan is None else [op for block in plan.blocks for op in block.ops]
    return tuple(_breakpoint_row(b, ops) for b in breakpoints if b.number)


def _breakpoint_row(b: Breakpoint, ops: list[LoweredOp]) -> BreakpointRow:
    if b.kind == "at" and not b.after:
        block, _, index = b.what.partition(":")
        spot = int(block), int(index)
        return BreakpointRow(b.number, b.text, b.hits, spot, (spot,))
    named = () if b.kind in ("nan", "when") else tuple((op.block, op.index) for op in ops if b.may_stop(op))
    return BreakpointRow(b.number, b.text, b.hits, None, named)


def _last_step(debugger: Debugger) -> tuple[Spot | None, tuple[str, ...]]:
    """The operator of the last step and its outputs; empty if the journal has dropped it."""
    tape = debugger.tape
    run = tape.runs[-1]
    if not len(tape.journal) or tape.at == run.first or tape.at - 1 in run.changes:
        return None, ()
    undo = tape.journal[-1]
    inner = undo.stack[-1]
    left = inner.pc >= len(inner.block.ops)  # leaving a block may pass values to its parent
    frame = undo.stack[-2] if left else inner
    op = frame.block.ops[frame.pc]
    names = dict.fromkeys(op.writes())
    written = tuple(n for n in names if (v := frame.scope.find_var(n)) is not None and wrote(undo, v))
    return (op.block, op.index), written


def _frames(snapshot: Snapshot) -> tuple[FrameLine, ...]:
    lines = [FrameLine("user's scope")]
    for i, frame in enumerate(snapshot.frames):
        at = "the end of the block" if frame.op is None else f"{frame.op.index} {frame.op.type}"
        title = f"block {frame.block}" + (f", iteration {frame.iteration}" if i else "")
        lines.append(FrameLine(title, at, frame.block, frame.pc))
    return tuple(lines)


def _source(spot: OpLocation | None) -> SourceLines | None:
    """The lines of a cell, or those around a line of a long file."""
    lines = linecache.getlines(spot.file) if spot is not None and spot.file else []
    if spot is None or not 0 < spot.line <= len(lines):
        return None
    first, last = max(1, spot.line - _SOURCE_LINES), min(len(lines), spot.line + _SOURCE_LINES)
    while first < spot.line and not lines[first - 1].strip():  # a cell's code begins below its first line
        first += 1
    return SourceLines(first, tuple(line.rstrip("\n") for line in lines[first - 1 : last]), spot.line)


def _words(spot: OpLocation | None) -> str:
    return "" if spot is None else spot.where


def _row(depth: int, op: OpRow) -> ListedOp:
    return ListedOp(depth, op.block, op.index, op.role, op.pieces, op.facts, op.location)


def _spot_row(spot: OpLocation, role: str, depth: int) -> ListedOp:
    left, sign, call = spot.text.partition(" = ")
    kind, _, inner = (call or left).partition("(")
    result = ((left, "name"), (" = ", "")) if sign else ()
    return ListedOp(depth, spot.block, spot.index, role, (*result, (kind, role), ("(" + inner, "")), "", spot.where)


def _titled(block: int, rows: list[ListedOp], note: str = "  no operator runs it") -> Iterator[ListedOp]:
    yield ListedOp(0, block, -1, "", ((f"block {block}", "bold"), (note, "dim")))
    yield from rows
