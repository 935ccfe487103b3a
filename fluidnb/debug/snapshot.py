"""What a session shows of itself at one moment; it never changes."""

from __future__ import annotations

from dataclasses import dataclass

from fluidnb.debug.stop import Stop
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.interpreter.interpreter import Frame
from fluidnb.visible import visible_line


@dataclass(frozen=True, slots=True)
class OpSpot:
    """An operator, and where it stands.

    Args:
        block: index of its block.
        index: its index there.
        type: its type.
        text: it as a line of pseudo code.
        place: the user's line, for example ``cell net, line 3``; empty if unknown.
        file: that line's file; empty if unknown.
        line: that line's number; 0 if unknown.
    """

    block: int
    index: int
    type: str
    text: str
    place: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class FrameSpot:
    """A block that is being run.

    Args:
        block: its index.
        pc: the index of the operator that comes next.
        iteration: which iteration, from 0; of a gradient block, the iteration that it is about.
        op: the operator that comes next, None at the end of the block.
    """

    block: int
    pc: int
    iteration: int
    op: OpSpot | None


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """A session at one moment.

    Args:
        state: ``idle`` (nothing to walk yet), ``running``, ``paused``, ``done``.
        stop: why it is there.
        at: steps from the beginning.
        run: which run of the session this is, from 0.
        frames: the blocks that are being run, innermost last.
        wrote: the variables that the last step wrote.
        watches: (expression, value as text).
        can_back: whether there is a step to take back.
        error: what went wrong in the operator that comes next, or None.
        kept: bytes that the journal holds.
        problems: what observers raised, as text.
        reached: steps from the beginning to the furthest place that is known.
        closed: whether the session has ended there.
        device: the device on which it runs, with its name; empty on the host.

    Example:
        >>> from fluidnb.debug.stop import StopKind
        >>> Snapshot("idle", Stop(StopKind.IDLE)).op is None
        True
    """

    state: str
    stop: Stop
    at: int = 0
    run: int = 0
    frames: tuple[FrameSpot, ...] = ()
    wrote: tuple[str, ...] = ()
    watches: tuple[tuple[str, str], ...] = ()
    can_back: bool = False
    error: BaseException | None = None
    kept: int = 0
    problems: tuple[str, ...] = ()
    reached: int = 0
    closed: bool = False
    device: str = ""

    @property
    def op(self) -> OpSpot | None:
        """The operator that comes next; None at the end of a block."""
        return self.frames[-1].op if self.frames else None

    @property
    def reason(self) -> str:
        """Why it is there, in words."""
        return self.stop.text

    @property
    def text(self) -> str:
        """Where it stands, in one line."""
        here = "" if self.op is None else f"  {self.op.block}:{self.op.index}  {self.op.text}"
        place = "" if self.op is None or not self.op.place else f"  ({self.op.place})"
        return f"{self.state} at step {self.at}, {self.reason}{here}{place}"

    def __repr__(self) -> str:
        return f"<{self.text}>"


def spot_of(op: LoweredOp) -> OpSpot:
    """An operator as snapshots have it.

    Args:
        op: the operator.

    Returns:
        Its spot.
    """
    where = op.where()
    left = ", ".join(op.writes())
    call = f"{op.desc.optype}({', '.join(op.reads())})"
    text = visible_line(f"{left} = {call}" if left else call)
    if where is None:
        return OpSpot(op.block, op.index, op.desc.optype, text)
    return OpSpot(op.block, op.index, op.desc.optype, text, where.short(), where.file, where.line)


def frames_of(stack: tuple[Frame, ...]) -> tuple[FrameSpot, ...]:
    """A machine's frames as snapshots have them.

    Args:
        stack: the frames.

    Returns:
        One spot each, innermost last.
    """
    spots = []
    for frame in stack:
        ops = frame.block.ops
        k = frame.k if frame.control is None else frame.control.iteration(frame.k)
        op = spot_of(ops[frame.pc]) if frame.pc < len(ops) else None
        spots.append(FrameSpot(frame.block.index, -1 if op is None else op.index, k, op))
    return tuple(spots)
