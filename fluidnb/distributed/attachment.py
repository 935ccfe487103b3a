"""A debug session in the roles of a training: it is in one role at a time, and the others wait for that one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.distributed.shard import Shard
from fluidnb.errors import NotFound, near
from fluidnb.program import Program
from fluidnb.transpiler.distribute.plan import Plan

if TYPE_CHECKING:
    from fluidnb.distributed.local import LocalEngine
    from fluidnb.distributed.ray_engine import RayEngine

#: Seconds between two checks whether a role has stopped.
_POLL = 0.05

#: The engines that run, the newest last.
running: list[LocalEngine | RayEngine] = []


class Here(Protocol):
    """Roles whose programs run in this process.

    Attributes:
        attachment: the debug session in one of them.
        programs: role -> the main program that it runs.
        shards: endpoint -> a server's `Shard`, or what has no program.
    """

    attachment: Attachment | None
    programs: dict[str, Program]
    shards: dict[str, Any]

    def role_names(self) -> dict[str, str]:
        """Names of roles as people write them -> keys of `programs`."""

    def has_ended(self, role: str) -> bool:
        """Whether a role does not run any more."""

    def raise_first(self) -> None:
        """Raise the error of the role that failed first."""

    def suspend_deadline(self, suspended: bool) -> None:
        """Let others wait without end, while the session is in a role."""


class Attachment:
    """Moves a debug session among the roles of a process: `fluidnb.debug.session.Role`.

    A role is attached to at the beginning of its next run: a trainer at its next batch, a server after its running
    update. It stops at its first operator, and from then on at the first operator of each run, or at breakpoints if
    there are any.

    Args:
        engine: whose roles these are.
        session: the debug session.
        front: called with the session in the thread that waits for the training, while the role is paused.
        stops: whether roles stop without a breakpoint.

    Attributes:
        name: of the role; empty while it is in none.
    """

    there = None  # the session is in this process

    def __init__(
        self, engine: Here, session: Session, front: Callable[[Session], None] | None = None,
        stops: bool = True,
    ) -> None:  # fmt: skip
        self.engine, self.session, self.front, self.stops, self.name = engine, session, front, stops, ""
        self._role = ""
        self._lock = threading.Lock()
        self._before: Callable[[Session], None] | None = None  # what the session did at stops outside of roles
        self._idle = threading.Event()  # no run of the role is in the session
        self._idle.set()
        engine.attachment = self

    def attach(self, name: str) -> None:
        """Let the session go into a role at its next run; it leaves the role before.

        Raises:
            NotFound: there is no such role.
        """
        roles = self.engine.role_names()
        role = roles.get(name, name)
        if role not in self.engine.programs:
            raise NotFound(
                f"There is no role {name}.", expected=", ".join(roles), received=name,
                hint=near(name, roles) or "roles lists them.",
            )  # fmt: skip
        self.leave()
        self.name, self._role = next(known for known, key in roles.items() if key == role), role
        self._before, self.session.on_stop = self.session.on_stop, self._hold
        self.session.role, self.session.stop_at_entry = self, self.stops
        self.session.attach(self.engine.programs[role])
        self.engine.suspend_deadline(True)
        if (server := self._server(role)) is not None:
            server.interrupt()

    def _server(self, role: str) -> Shard | None:
        """The shard of a server; None of another role."""
        shard = self.engine.shards.get(role)
        return shard if isinstance(shard, Shard) else None

    def leave(self) -> None:
        """Let the role run on without stops."""
        if not self.name:
            return
        with self._lock:
            role, self.name = self._role, ""
        self.session.__exit__()
        self.session.role, self.session.stop_at_entry = None, False
        points = self.session.breakpoints
        self.engine.suspend_deadline(False)
        if (server := self._server(role)) is not None:
            server.interrupt()
        while not self._idle.wait(_POLL):
            if self.session.snapshot.state == "paused" and self.session.snapshot.error is None:
                self.session.clear()
                self.session.post(Debugger.continue_)
        for point in points if not self.session.breakpoints else ():
            self.session.do(Debugger.add_breakpoint, point)
        self.session.on_stop = self._before

    def wait(self) -> None:
        """Wait until the role is paused again; Ctrl-C pauses it where it is, or leaves a role that waits.

        Raises:
            NotFound: the role has ended.
        """
        while self.name and not self.is_paused:
            if self.engine.has_ended(self._role):
                name = self.name
                self.leave()
                self.engine.raise_first()
                raise NotFound(
                    f"{name} has ended.", expected="a role that runs", received=name,
                    hint="attach to it while the training runs.",
                )  # fmt: skip
            try:
                time.sleep(_POLL)
            except KeyboardInterrupt:
                if self._idle.is_set():  # it waits for its next batch, or for others
                    self.leave()
                    raise
                self.session.pause()

    @property
    def is_paused(self) -> bool:
        """Whether the role is stopped in this session."""
        return not self._idle.is_set() and self.session.snapshot.state == "paused"

    def serve(self) -> None:
        """Run the front end of a paused role, in the thread that waits for the training."""
        if self.front is not None and self.is_paused:
            self.front(self.session)

    def _hold(self, session: Session) -> None:
        """Let the role wait, in its thread, until its run is over or it fails."""
        self._idle.clear()
        with self._lock:  # the program may have begun before it was interrupted; it must not end for that
            server = self._server(self._role)
            if self.name and server is not None:
                server.has_begun()
        moved = threading.Event()

        def observe(snapshot: Snapshot) -> None:
            if snapshot.state == "done" or snapshot.closed or snapshot.error is not None:
                moved.set()

        session.do_between_steps(Debugger.observe, observe)
        try:
            moved.wait()
        finally:
            if not session.closed:
                session.do_between_steps(Debugger.forget, observe)
            session.stop_at_entry = bool(self.name) and self.stops and not session.breakpoints
            self._idle.set()


def role_keys(plan: Plan) -> dict[str, str]:
    """Names of roles as people write them -> those of the engines.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(x, 1)))
        >>> t = fluid.DistributeTranspiler(); t.transpile(0, pservers="ps:0", trainers=2)
        >>> role_keys(t.plan)
        {'trainer0': 'trainer:0', 'trainer1': 'trainer:1', 'pserver0': 'ps:0'}
    """
    trainers = {f"trainer{number}": f"trainer:{number}" for number in range(plan.trainers)}
    return {**trainers, **{f"pserver{number}": endpoint for number, endpoint in enumerate(plan.endpoints)}}


def newest_engine() -> LocalEngine | RayEngine:
    """The engine that was started last, of those that run.

    Raises:
        NotFound: none runs in this process.
    """
    if not running:
        raise NotFound(
            "No training by several roles runs here.", expected="an engine that runs", received="none",
            hint="%fluid train READER --trainers 2 starts one.",
        )  # fmt: skip
    return running[-1]


def attach(session: Session, name: str) -> None:
    """Move a session into a role of the newest engine, and wait until the role is paused.

    Args:
        session: a debug session whose other runs are over.
        name: ``trainer0``, ``pserver1``, or as the engine calls it.

    Raises:
        NotFound: no engine runs, it has no such role, or the role has ended.
    """
    newest_engine().attach(session, name)


def attach_here(engine: Here, session: Session, name: str) -> None:
    """Move a session into a role of this process, and wait until the role is paused."""
    attachment = engine.attachment
    if attachment is None or attachment.session is not session:
        if attachment is not None:
            attachment.leave()
        attachment = Attachment(engine, session)
    attachment.stops = True
    attachment.attach(name)
    attachment.wait()
