"""The reason why a debug session is paused: facts as data, and the one sentence that is rendered from them."""

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


_MOST = 4  # variables that a sentence names
#: kind of a breakpoint -> kind of the stop; the others are plain breakpoints
_AT_BREAKPOINT = {"var": StopKind.WATCHPOINT, "nan": StopKind.NAN}


@dataclass(frozen=True, slots=True)
class Stop:
    """The reason why a session is paused, or that it runs."""

    kind: StopKind  # what made it stop
    direction: Direction = Direction.FORWARD  # which way it went
    count: int = 1  # steps that were taken; of ``GOTO`` the step that it went to
    breakpoint: Breakpoint | None = None  # as it was when it was reached; of ``END`` the one that was not reached
    # variables: of ``WRITE``, ``NO_WRITE`` and ``EDIT``, or those changed before a failure without a copy
    names: tuple[str, ...] = ()
    op: str = ""  # the type of the operator whose attributes were edited
    attrs: tuple[tuple[str, str], ...] = ()  # (attribute, value as text) that were edited
    error: str = ""  # the type of the error that the expression of a breakpoint raised

    @property
    def text(self) -> str:
        """The sentence that users read; no code does."""
        return stop_text(self)

    @property
    def at_breakpoint(self) -> bool:
        """Whether a breakpoint was reached."""
        return self.kind in (StopKind.BREAKPOINT, StopKind.WATCHPOINT, StopKind.NAN)


def stop_at(breakpoint: Breakpoint, direction: Direction = Direction.FORWARD) -> Stop:
    """The stop at a breakpoint."""
    return Stop(_AT_BREAKPOINT.get(breakpoint.kind, StopKind.BREAKPOINT), direction, breakpoint=breakpoint.copy())


#: kind -> its sentence, where that needs no other fact
_SENTENCES = {
    StopKind.IDLE: "no run yet",
    StopKind.REPLAYING: "replaying the run that failed",
    StopKind.ENTRY: "entry",
    StopKind.OUT: "after the block",
    StopKind.PAUSE: "paused",
    StopKind.START: "the beginning",
    StopKind.RESTART: "the beginning of the run",
    StopKind.RESTART_BLOCK: "the beginning of the block",
    StopKind.ERROR: "the operator failed",
    StopKind.NO_ERROR: "the replay did not fail",
}


def stop_text(stop: Stop) -> str:
    """The sentence for a stop; no other code writes one."""
    back, name = stop.direction is Direction.BACKWARD, ", ".join(stop.names)
    where = "" if stop.breakpoint is None else stop.breakpoint.text
    match stop.kind:
        case StopKind.RUNNING:
            return "running backwards" if back else "running"
        case StopKind.STEP:
            steps = "1 step" if stop.count == 1 else f"{stop.count} steps"
            return f"after {steps} back" if back else f"after {steps}"
        case StopKind.NEXT:
            return "after 1 operator back" if back else "after 1 operator"
        case StopKind.BREAKPOINT | StopKind.WATCHPOINT | StopKind.NAN:
            return f"breakpoint {where}, backwards" if back else f"breakpoint {where}"
        case StopKind.GOTO:
            return f"went to step {stop.count}"
        case StopKind.END:
            return f"the end; {where} was not reached" if where else "the end"
        case StopKind.WRITE:
            return f"before {name} is written"
        case StopKind.NO_WRITE:
            return f"no recorded step wrote {name}"
        case StopKind.EDIT if stop.op:
            return f"set {', '.join(f'{key}={value}' for key, value in stop.attrs)} of {stop.op}"
        case StopKind.EDIT:
            return f"set {name}"
        case StopKind.POST_MORTEM:
            more = " ..." if len(stop.names) > _MOST else ""
            lost = ", ".join(stop.names[:_MOST]) + more
            return f"the operator failed; not restored: {lost}" if lost else "the operator failed"
        case StopKind.CONDITION_ERROR:
            return f"a breakpoint raised {stop.error}"
    return _SENTENCES[stop.kind]
