"""The debugger panel as plain data: listing, position, breakpoints."""

from __future__ import annotations

import json
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fluidnb.debug.breakpoints import Breakpoint
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.journal import wrote
from fluidnb.debug.snapshot import OpLocation, Snapshot, op_location
from fluidnb.program.constants import role_of
from fluidnb.proto.desc import OpDesc
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.viz.base.styled_text import Line, Span
from fluidnb.viz.program.model import BlockRow, ProgramPicture
from fluidnb.viz.program.reader import read_op, read_program
from fluidnb.viz.session.text import error_lines

#: Lines of the user's code before and after the one that appended an operator.
_SOURCE_LINES = 12
#: (block, index) of an operator.
Spot = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ListedOp:
    """A row of the listing."""

    depth: int  # nesting depth of its block
    block: int  # index of its block
    index: int  # its index in the block; -1 for the title of a block that no operator runs
    role: str  # forward, backward or optimizer; empty for a title
    pieces: tuple[Span, ...]  # its text
    facts: str = ""  # dtype and shape of its output
    location: str = ""  # the user's line


@dataclass(frozen=True, slots=True)
class Listing:
    """All operators of a program, nested blocks after the operator that runs them."""

    counts: str  # number of operators in words
    rows: tuple[ListedOp, ...]


@dataclass(frozen=True, slots=True)
class FrameLine:
    """A scope from the outermost one to the position of the session."""

    title: str
    at: str = ""  # the current operator in words; empty for the outermost scope
    block: int = -1  # the block; -1 for the outermost scope
    index: int = -1  # index of the current operator; -1 at the end of the block


@dataclass(frozen=True, slots=True)
class SourceLines:
    """The user's code around the line that appended an operator."""

    first: int  # number of the first line
    lines: tuple[str, ...]
    line: int  # number of the line that appended it


@dataclass(frozen=True, slots=True)
class SessionPosition:
    """The position of a session."""

    state: str = "idle"  # as in `Snapshot`
    reason: str = ""  # why it stopped there
    at: int = 0  # steps from the beginning
    reached: int = 0  # steps to the furthest position
    first: int = 0  # the first step of the tape
    runs: tuple[int, ...] = ()  # the first step of each run
    here: Spot | None = None  # the next operator; None at the end of a block
    ran: Spot | None = None  # the operator that the last step ran; None where there is none
    wrote: tuple[str, ...] = ()  # the variables that the last step wrote
    reads: tuple[str, ...] = ()  # the variables that the next operator reads
    frames: tuple[FrameLine, ...] = ()  # the scopes from the outermost inwards
    location: str = ""  # the user's line
    error: tuple[Line, ...] = ()  # the error of the next operator
    can_back: bool = False  # whether there is a step to undo
    device: str = ""  # the device with its name; empty on the host
    source: SourceLines | None = None  # the user's code that appended the next operator; None where it cannot be read


@dataclass(frozen=True, slots=True)
class BreakpointRow:
    """A breakpoint."""

    number: int
    text: str  # its description
    hits: int
    spot: Spot | None  # its operator if it is set at one; None for other kinds
    ops: tuple[Spot, ...] = ()  # the operators at which it may stop; empty where that depends on values alone


def read_listing(program: Any, changed: Mapping[Spot, OpDesc] | None = None) -> Listing:
    """Reads a program as the rows of a listing; ``changed``: operators that a session runs with other attributes."""
    others = {spot: read_op(desc, spot[1]) for spot, desc in (changed or {}).items()}
    picture: ProgramPicture = read_program(program)

    def listed(block: BlockRow, depth: int) -> list[ListedOp]:
        return [
            ListedOp(
                deep, op.block, op.index, op.role, others.get((op.block, op.index), op).pieces, op.facts, op.location
            )
            for deep, op in block.walk(depth)
        ]

    rows = listed(picture.root, 0)
    for block in picture.loose:
        rows += _titled(block.index, listed(block, 1))
    return Listing(picture.counts, tuple(rows))


def compiled_listing(lowered: LoweredProgram) -> Listing:
    """The compiled operators of a run whose program was changed since, block by block."""
    rows: list[ListedOp] = []
    for block in lowered.blocks:
        listed = [_spot_row(op_location(op), role_of(op.desc), min(block.index, 1)) for op in block.ops]
        rows += listed if block.index == 0 else _titled(block.index, listed, "")
    return Listing(f"{len(rows):,} rows", tuple(rows))


def listing_json(listing: Listing) -> str:
    """A listing as the page reads it."""
    rows = [[r.depth, r.block, r.index, r.role, r.pieces, r.facts, r.location] for r in listing.rows]
    return json.dumps({"counts": listing.counts, "rows": rows}, separators=(",", ":"))


def has_changed(lowered: LoweredProgram) -> bool:
    """Whether the program was changed since it was compiled."""
    if lowered.version == lowered.desc.version:
        return False
    blocks = lowered.desc.blocks
    if len(blocks) != len(lowered.blocks):
        return True
    for now, then in zip(blocks, lowered.blocks, strict=True):
        ops = [op for op in now.ops if op.optype not in ("feed", "fetch")]
        if len(ops) != len(then.ops) or any(
            a is not b.desc and (b.block, b.index) not in lowered.changed for a, b in zip(ops, then.ops, strict=True)
        ):
            return True
    return False


def read_position(debugger: Debugger, snapshot: Snapshot) -> SessionPosition:
    """Reads the position of a session."""
    tape = debugger.tape
    state = (snapshot.state, snapshot.reason, snapshot.at, snapshot.reached, tape.forgotten)
    runs = tuple(run.first for run in (*tape.runs, *reversed(tape.ahead)))
    frames = [FrameLine("user's scope")] if tape.runs else []
    for i, frame in enumerate(snapshot.frames if tape.runs else ()):
        at = "the end of the block" if frame.op is None else f"{frame.op.index} {frame.op.type}"
        title = f"block {frame.block}" + (f", iteration {frame.iteration}" if i else "")
        frames.append(FrameLine(title, at, frame.block, frame.pc))
    here = snapshot.op
    spot = None if here is None else (here.block, here.index)
    position = SessionPosition(
        *state, runs, spot, frames=tuple(frames), can_back=snapshot.can_back, device=snapshot.device
    )
    if snapshot.state == "running" or not tape.runs:
        return position
    ran, written = _last_step(debugger)
    reads = () if tape.interpreter.here is None else tuple(dict.fromkeys(tape.interpreter.here.reads()))
    return replace(
        position, ran=ran, wrote=written, reads=reads, location="" if here is None else here.where,
        error=tuple(error_lines(snapshot)), source=_source(here),
    )  # fmt: skip


def read_breakpoints(breakpoints: Sequence[Breakpoint], lowered: LoweredProgram | None) -> tuple[BreakpointRow, ...]:
    """Breakpoints as plain data, in the order of creation."""
    ops = [] if lowered is None else [op for block in lowered.blocks for op in block.ops]
    rows = []
    for b in breakpoints:
        if not b.number:
            continue
        if b.kind == "at" and not b.after:
            block, _, index = b.what.partition(":")
            spot = int(block), int(index)
            rows.append(BreakpointRow(b.number, b.text, b.hits, spot, (spot,)))
        else:
            named = () if b.kind in ("nan", "when") else tuple((op.block, op.index) for op in ops if b.may_stop(op))
            rows.append(BreakpointRow(b.number, b.text, b.hits, None, named))
    return tuple(rows)


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


def _source(spot: OpLocation | None) -> SourceLines | None:
    """The lines of a cell, or those around a line of a long file."""
    lines = linecache.getlines(spot.file) if spot is not None and spot.file else []
    if spot is None or not 0 < spot.line <= len(lines):
        return None
    first, last = max(1, spot.line - _SOURCE_LINES), min(len(lines), spot.line + _SOURCE_LINES)
    while first < spot.line and not lines[first - 1].strip():  # a cell's code begins below its first line
        first += 1
    return SourceLines(first, tuple(line.rstrip("\n") for line in lines[first - 1 : last]), spot.line)


def _spot_row(spot: OpLocation, role: str, depth: int) -> ListedOp:
    left, sign, call = spot.text.partition(" = ")
    kind, _, inner = (call or left).partition("(")
    result = ((left, "name"), (" = ", "")) if sign else ()
    return ListedOp(depth, spot.block, spot.index, role, (*result, (kind, role), ("(" + inner, "")), "", spot.where)


def _titled(block: int, rows: list[ListedOp], note: str = "  no operator runs it") -> Iterator[ListedOp]:
    yield ListedOp(0, block, -1, "", ((f"block {block}", "bold"), (note, "dim")))
    yield from rows
