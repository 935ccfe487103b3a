"""Immutable snapshots of a session."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fluidnb.debug.stop import Stop
from fluidnb.op import EMPTY
from fluidnb.proto.desc import OpDesc
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.interpreter.interpreter import Frame
from fluidnb.utils.escapes import visible_line


@dataclass(frozen=True, slots=True)
class OpLocation:
    """An operator of a program."""

    block: int  # index of its block
    index: int  # its index there
    type: str
    text: str  # the operator as a line of pseudo code
    where: str = ""  # the user's line, for example ``cell net, line 3``; empty if unknown
    file: str = ""  # that line's file; empty if unknown
    line: int = 0  # that line's number; 0 if unknown


@dataclass(frozen=True, slots=True)
class FrameLocation:
    """A block that is being run."""

    block: int  # its index
    pc: int  # the index of the next operator
    iteration: int  # the iteration, from 0; of a gradient block, that of the forward block
    op: OpLocation | None  # the next operator; None at the end of the block
    changed: Mapping[int, OpDesc] = field(default_factory=dict)  # index -> an operator with attributes of the session


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """The state of a session."""

    state: str  # ``idle`` (no run yet), ``running``, ``paused``, ``done``
    stop: Stop  # why it is there  # the reason
    at: int = 0  # steps from the beginning
    run: int = 0  # the run of the session, from 0
    frames: tuple[FrameLocation, ...] = ()  # the blocks that are being run, innermost last
    wrote: tuple[str, ...] = ()  # the variables that the last step wrote
    watches: tuple[tuple[str, str], ...] = ()  # (expression, value as text)
    can_back: bool = False  # whether a step back is possible
    error: BaseException | None = None  # the error of the next operator, or None
    kept: int = 0  # bytes of the journal
    problems: tuple[str, ...] = ()  # errors of observers, as text
    reached: int = 0  # steps from the beginning to the furthest step so far
    closed: bool = False  # whether the session was closed
    device: str = ""  # the device on which it runs, with its name; empty on the host

    @property
    def op(self) -> OpLocation | None:
        """The next operator; None at the end of a block."""
        return self.frames[-1].op if self.frames else None

    @property
    def reason(self) -> str:
        """The reason of the stop, as a sentence."""
        return self.stop.text

    @property
    def text(self) -> str:
        """State, step, reason and next operator in one line."""
        here = "" if self.op is None else f"  {self.op.block}:{self.op.index}  {self.op.text}"
        line = "" if self.op is None or not self.op.where else f"  ({self.op.where})"
        return f"{self.state} at step {self.at}, {self.reason}{here}{line}"

    def __repr__(self) -> str:
        return f"<{self.text}>"


def op_location(op: LoweredOp) -> OpLocation:
    """An operator as snapshots have it."""
    where, text = op.where(), _text(op.desc.optype, op.reads(), op.writes())
    if where is None:
        return OpLocation(op.block, op.index, op.desc.optype, text)
    return OpLocation(op.block, op.index, op.desc.optype, text, where.short(), where.file, where.line)


def still_there(location: OpLocation, program: Any) -> OpDesc | None:
    """The operator of a program at a location; None where the program was changed and has another one there."""
    blocks = program.desc.blocks
    ops = blocks[location.block].ops if location.block < len(blocks) else []
    op = ops[location.index] if location.index < len(ops) else None
    if op is None:
        return None
    reads, writes = ([n for row in slots.values() for n in row if n != EMPTY] for slots in (op.ins, op.outs))
    return op if _text(op.optype, reads, writes) == location.text else None


def _text(optype: str, reads: Iterable[str], writes: Iterable[str]) -> str:
    """An operator as a line of pseudo code."""
    left, call = ", ".join(writes), f"{optype}({', '.join(reads)})"
    return visible_line(f"{left} = {call}" if left else call)


def frames_of(stack: tuple[Frame, ...], changed: Mapping[tuple[int, int], OpDesc]) -> tuple[FrameLocation, ...]:
    """The frames of an interpreter as snapshots have them, innermost last."""
    locations = []
    for frame in stack:
        ops = frame.block.ops
        k = frame.k if frame.control is None else frame.control.iteration(frame.k)
        op = op_location(ops[frame.pc]) if frame.pc < len(ops) else None
        mine = {index: desc for (block, index), desc in changed.items() if block == frame.block.index}
        locations.append(FrameLocation(frame.block.index, -1 if op is None else op.index, k, op, mine))
    return tuple(locations)
