"""Why a debug session is where it is: facts as data, and the one sentence that is rendered from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fluidnb.debug.breakpoints import Breakpoint


class StopKind(Enum):
    """The reason of a stop, or the state of a running session."""

    IDLE = "idle"  # no run was begun
    RUNNING = "running"
    REPLAYING = "replaying"  # a failed run, up to the operator that failed
    ENTRY = "entry"  # the first operator of a run
    STEP = "step"
    NEXT = "next"  # an operator with the blocks that it runs
    OUT = "out"
    BREAKPOINT = "breakpoint"
    WATCHPOINT = "watchpoint"  # a variable was written
    NAN = "nan"
    PAUSE = "pause"
    GOTO = "goto"
    END = "end"  # of the run
    START = "start"  # of everything that is recorded
    RESTART = "restart"  # of the run
    RESTART_BLOCK = "restart block"
    WRITE = "write"  # just before a variable was written
    NO_WRITE = "no write"
    EDIT = "edit"
    ERROR = "error"
    POST_MORTEM = "post mortem"  # the operator at which a failed run has failed again
    NO_ERROR = "no error"  # a failed run that did not fail again
    CONDITION_ERROR = "condition error"  # the expression of a breakpoint raised


class Direction(Enum):
    """The direction of a session's last command."""

    FORWARD = "forward"
    BACKWARD = "backward"


#: Variables that a sentence names.
_MOST = 4
#: kind of a breakpoint -> kind of the stop; the others are plain breakpoints
_AT_BREAKPOINT = {"var": StopKind.WATCHPOINT, "nan": StopKind.NAN}


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a session is where it is.

    Args:
        kind: what made it stop.
        direction: which way it went.
        count: steps that were taken; of ``GOTO`` the step that it went to.
        breakpoint: as it was when it was reached; of ``END`` the one that was not reached.
        names: variables: of ``WRITE``, ``NO_WRITE`` and ``EDIT``, or those changed before a failure without a copy.
        op: the type of the operator whose attributes were edited.
        attrs: (attribute, value as text) that were edited.
        error: the type of the error that the expression of a breakpoint raised.

    Example:
        >>> Stop(StopKind.STEP, count=2).text
        'after 2 steps'
    """

    kind: StopKind
    direction: Direction = Direction.FORWARD
    count: int = 1
    breakpoint: Breakpoint | None = None
    names: tuple[str, ...] = ()
    op: str = ""
    attrs: tuple[tuple[str, str], ...] = ()
    error: str = ""

    @property
    def text(self) -> str:
        """The sentence that users read; no code does."""
        return stop_text(self)

    @property
    def at_breakpoint(self) -> bool:
        """Whether a breakpoint was reached."""
        return self.kind in (StopKind.BREAKPOINT, StopKind.WATCHPOINT, StopKind.NAN)


def stop_at(breakpoint: Breakpoint, direction: Direction = Direction.FORWARD) -> Stop:
    """The stop at a breakpoint.

    Args:
        breakpoint: the breakpoint; a copy is kept, for it may move later.
        direction: which way the session went.

    Example:
        >>> stop_at(Breakpoint("var", "loss"), Direction.BACKWARD).kind
        <StopKind.WATCHPOINT: 'watchpoint'>
    """
    return Stop(_AT_BREAKPOINT.get(breakpoint.kind, StopKind.BREAKPOINT), direction, breakpoint=breakpoint.copy())


def stop_text(stop: Stop) -> str:
    """The sentence for a stop; no other code writes one.

    Args:
        stop: the facts.

    Example:
        >>> stop_text(Stop(StopKind.EDIT, names=("loss",)))
        'set loss'
    """
    back, name = stop.direction is Direction.BACKWARD, ", ".join(stop.names)
    where = "" if stop.breakpoint is None else stop.breakpoint.text
    match stop.kind:
        case StopKind.IDLE:
            return "no run yet"
        case StopKind.RUNNING:
            return "running backwards" if back else "running"
        case StopKind.REPLAYING:
            return "replaying the run that failed"
        case StopKind.STEP:
            steps = "1 step" if stop.count == 1 else f"{stop.count} steps"
            return f"after {steps} back" if back else f"after {steps}"
        case StopKind.NEXT:
            return "after 1 operator back" if back else "after 1 operator"
        case StopKind.OUT:
            return "after the block"
        case StopKind.BREAKPOINT | StopKind.WATCHPOINT | StopKind.NAN:
            return f"breakpoint {where}, backwards" if back else f"breakpoint {where}"
        case StopKind.PAUSE:
            return "paused"
        case StopKind.GOTO:
            return f"went to step {stop.count}"
        case StopKind.END:
            return f"the end; {where} was not reached" if where else "the end"
        case StopKind.START:
            return "the beginning"
        case StopKind.RESTART:
            return "the beginning of the run"
        case StopKind.RESTART_BLOCK:
            return "the beginning of the block"
        case StopKind.WRITE:
            return f"before {name} is written"
        case StopKind.NO_WRITE:
            return f"no recorded step wrote {name}"
        case StopKind.EDIT if stop.op:
            return f"set {', '.join(f'{key}={value}' for key, value in stop.attrs)} of {stop.op}"
        case StopKind.EDIT:
            return f"set {name}"
        case StopKind.ERROR:
            return "the operator failed"
        case StopKind.POST_MORTEM:
            more = " ..." if len(stop.names) > _MOST else ""
            lost = ", ".join(stop.names[:_MOST]) + more
            return f"the operator failed; not restored: {lost}" if lost else "the operator failed"
        case StopKind.NO_ERROR:
            return "the replay did not fail"
        case StopKind.CONDITION_ERROR:
            return f"a breakpoint raised {stop.error}"
        case StopKind.ENTRY:
            return "entry"
