"""One client of a debug session that speaks the Debug Adapter Protocol, whatever carries its messages."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from fluidnb.dap.capabilities import CAPABILITIES
from fluidnb.dap.counting import shifted, shifts
from fluidnb.dap.looking import Looking
from fluidnb.dap.references import BASE, END, References
from fluidnb.dap.requests import checked_arguments
from fluidnb.dap.sources import Source, Sources
from fluidnb.dap.stops import Stops
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.debug.stop import Direction, Stop, StopKind
from fluidnb.debug.walker import Walker
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpValueError

Message = dict[str, Any]

#: The one thread that clients see.
THREAD = BASE

#: request -> the command of the session
_MOVES = {
    "next": "next", "stepIn": "step", "stepOut": "out", "continue": "go_on", "stepBack": "back_over",
    "reverseContinue": "back_on", "restart": "restart",
}  # fmt: skip


class Host(Protocol):
    """What runs the program that is debugged, where that can be ended."""

    @property
    def goes_on(self) -> bool:
        """Whether it goes on by itself when a run is over."""

    def terminate(self) -> None:
        """End the run, and what asked for it."""

    def changed(self) -> None:
        """A client is ready."""

    def give_up(self, error: BaseException) -> None:
        """Let the run that stands at an operator that failed raise the error."""


class Adapter(Looking):
    """Answers the requests of one client, and tells it what happens.

    Several may serve one session: each sees every stop, and sets breakpoints of its own.

    Args:
        emit: called with each event; from the session's thread too, so it should not wait.
        session: the session.
        sources: where operators are shown.
        host: what can end the run; None where nothing can.

    Example:
        >>> from fluidnb.dap import ScriptSources
        >>> y = fluid.layers.relu(fluid.layers.fill_constant([2], "float32", -1.0))
        >>> d = fluid.debug(feed={}); told = []
        >>> adapter = Adapter(told.append, d, ScriptSources(lambda: d.program))
        >>> for i, command in enumerate(["initialize", "attach", "configurationDone", "next", "stepBack"]):
        ...     answer = adapter.handle({"seq": i + 1, "type": "request", "command": command})
        >>> stop = d.step()
        >>> [event["event"] for event in told], d.snapshot.op.type
        (['initialized', 'stopped', 'stopped', 'stopped', 'continued', 'stopped'], 'relu')
        >>> adapter.close(); d.close()

    Source: Debug Adapter Protocol, specification 1.x.
    """

    def __init__(
        self, emit: Callable[[Message], None], session: Session, sources: Sources, host: Host | None = None
    ) -> None:
        self._emit, self._session, self._sources, self._host = emit, session, sources, host
        self._known = References()
        self._stops = Stops(sources, self._say, self._around)
        self._seq, self._sending = itertools.count(1), threading.Lock()
        self._client: Mapping[str, Any] = {}
        self._shifts: dict[str, int] = {}
        self._ready = self._closed = False
        self._seen: Snapshot | None = None  # where the client believes it stands; None while it believes it runs
        self._then: list[Callable[[], None]] = []
        self.stops_at_errors = True
        session.aside(Walker.observe, self._look)

    # ---- messages

    def handle(self, message: Message) -> Message:
        """Answer a request; what it asks for is under way when this returns.

        Args:
            message: the request.

        Returns:
            The response; of one that cannot be done, with ``success`` false and the reason.
        """
        answers: list[Message] = []
        self.answer(message, answers.append)
        return answers[0]

    def answer(self, message: Message, send: Callable[[Message], None]) -> None:
        """Answer a request, and only then do what it asks to happen, so that events follow the response.

        Args:
            message: the request.
            send: called with the response.
        """
        self._then = []
        send(self._response(message))
        then, self._then = self._then, []
        for act in then:
            try:
                act()
            except FluidError as error:  # the session was closed meanwhile
                self.output(f"{error}\n", "stderr")

    def owns(self, message: Message) -> bool:
        """Whether a request speaks of our thread, frames or values, where another debugger listens too.

        Args:
            message: the request.

        Example:
            >>> Adapter.owns(None, {"arguments": {"threadId": THREAD}}), Adapter.owns(None, {"arguments": {}})
            (True, False)
        """
        arguments = message.get("arguments")
        keys = ("threadId", "frameId", "variablesReference", "sourceReference")
        numbers = [arguments.get(key) for key in keys] if isinstance(arguments, Mapping) else []
        return any(isinstance(n, int) and BASE <= n < END for n in numbers)

    def event(self, name: str, body: Mapping[str, Any] | None = None) -> None:
        """Tell the client something.

        Args:
            name: what the protocol calls it.
            body: what there is to say.
        """
        message: Message = {"type": "event", "event": name}
        if body is not None:
            message["body"] = shifted(dict(body), self._shifts, -1)
        with self._sending:
            self._emit({"seq": next(self._seq), **message})

    def output(self, text: str, category: str = "stdout") -> None:
        """Show text in the client's console.

        Args:
            text: the text.
            category: ``stdout``, ``stderr`` or ``console``.
        """
        self.event("output", {"category": category, "output": text})

    def tell(self) -> None:
        """Tell the client once more where the session stands, if it stands."""
        self._session.aside(self._again)

    def end(self, status: int = 0) -> None:
        """Tell the client that what ran the program has ended.

        Args:
            status: its exit status.
        """
        self.event("exited", {"exitCode": status})
        self.event("terminated", {})

    def close(self) -> None:
        """Leave the session: it stays where it stands, without this client's breakpoints."""
        if self._closed:
            return
        self._closed = True
        if not self._session.closed:
            self._session.aside(self._leave)

    @property
    def ready(self) -> bool:
        """Whether the client has said all that it wants before the program runs."""
        return self._ready

    # ---- how requests are answered

    def _response(self, message: Message) -> Message:
        command, seq, arguments = message.get("command"), message.get("seq"), message.get("arguments")
        base: Message = {"type": "response", "request_seq": seq if isinstance(seq, int) else 0, "command": str(command)}
        try:
            if not isinstance(command, str) or message.get("type") != "request":
                raise OpValueError("That is no request.", expected="type request, and a command", received=str(command))
            if not isinstance(arguments, dict | None):
                raise OpValueError("The arguments are no object.", expected="an object", received=str(arguments)[:80])
            do = getattr(self, f"do_{command}", None)
            if do is None and command not in _MOVES:
                raise NotFound(f"There is no request {command} here.", received=command)
            given = shifted(checked_arguments(command, arguments or {}), self._shifts)
            body = self._move(command, given) if do is None else do(given)
            body = shifted(body, self._shifts, -1)
            found: Message = {"success": True} if body is None else {"success": True, "body": body}
        except KeyError as error:
            found = _refused(f"{command} needs {error}.")
        except FluidError as error:
            error.where = None  # the line would be that of the run, which has nothing to do with it
            found = _refused(str(error))
        except Exception as error:
            found = _refused(f"{type(error).__name__}: {error}")
        with self._sending:
            return {"seq": next(self._seq), **base, **found}

    def do_initialize(self, a: Message) -> Message:
        """Tell what this adapter can do."""
        self._client, self._shifts = a, shifts(a)
        self._then.append(lambda: self.event("initialized"))
        return CAPABILITIES

    def do_attach(self, a: Message) -> None:
        """Join the session."""
        self._begin_with(a)

    def do_launch(self, a: Message) -> None:
        """Join the session, whose program is there already."""
        self._begin_with(a)

    def do_configurationDone(self, a: Message) -> None:
        """The client has set its breakpoints: tell where the session stands."""
        self._then.append(lambda: self._session.aside(self._start))

    def do_disconnect(self, a: Message) -> None:
        """Leave, and end the run where that is wanted."""
        if a.get("terminateDebuggee") and self._host is not None:
            self._then.append(self._host.terminate)
        self.close()

    def do_terminate(self, a: Message) -> None:
        """End the run."""
        if self._host is None:
            raise EnforceNotMet("Nothing here can be ended.", hint="disconnect leaves the session as it is.")
        self._then.append(self._host.terminate)

    def do_threads(self, a: Message) -> Message:
        """The program is the only thread."""
        return {"threads": [{"id": THREAD, "name": "fluid program"}]}

    def do_pause(self, a: Message) -> None:
        """Stop after the operator that is under way, or where the next run begins."""
        self._session.pause()
        if self._session.snapshot.state in ("idle", "done"):
            self._session.aside(self._stops.stop_soon)

    def do_setBreakpoints(self, a: Message) -> Message:
        """Set the breakpoints of a source."""
        wanted = a.get("breakpoints") or [{"line": line} for line in a.get("lines") or ()]
        return {"breakpoints": self._session.aside(self._stops.lines, a["source"], wanted)}

    def do_setFunctionBreakpoints(self, a: Message) -> Message:
        """Stop before operators of some types."""
        return {"breakpoints": self._session.aside(self._stops.functions, a["breakpoints"])}

    def do_setDataBreakpoints(self, a: Message) -> Message:
        """Stop after steps that write some variables."""
        return {"breakpoints": self._session.aside(self._stops.data, a["breakpoints"])}

    def do_setExceptionBreakpoints(self, a: Message) -> Message:
        """Stop at NaN, and at operators that fail."""
        filters = [{"filterId": name} for name in a.get("filters") or ()] + list(a.get("filterOptions") or ())
        self.stops_at_errors = any(row["filterId"] == "error" for row in filters)
        return {"breakpoints": self._session.aside(self._stops.exceptions, filters)}

    # ---- moving

    def _move(self, request: str, a: Message) -> Message | None:
        command = _MOVES[request]
        if request == "stepBack" and a.get("granularity") == "instruction":
            command = "back"
        self._must_stand()
        error, host = self._session.snapshot.error, self._host
        if request == "continue" and error is not None and host is not None and self._session.waited_for:
            self._then += [lambda: self._session.aside(self._resume), lambda: host.give_up(error)]
        else:
            self._then.append(lambda: self._go(command))
        return {"allThreadsContinued": True} if request == "continue" else None

    def do_restartFrame(self, a: Message) -> None:
        """Go back to where a frame was entered."""
        depth = self._depth(a["frameId"])
        self._must_stand()
        self._then.append(lambda: self._go("call", _to_start, depth))

    def _go(self, command: str, *args: Any) -> None:
        future = self._session.post("call", self._moving, command, *args)
        future.add_done_callback(self._tell_failure)

    def _tell_failure(self, future: Future[Any]) -> None:
        error = future.exception()
        if error is not None:
            self.output(f"{error}\n", "stderr")

    def _moving(self, walker: Walker, command: str, *args: Any) -> Any:
        self._resume(walker)
        return getattr(walker, command)(*args)

    def _resume(self, walker: Walker) -> None:
        """From here on the client believes that it runs; called in the worker's thread."""
        self._seen = None
        self._known.forget()

    def _must_stand(self) -> None:
        if self._session.closed:
            raise EnforceNotMet("The session is closed.")
        if self._session.snapshot.state not in ("paused", "done"):
            raise EnforceNotMet("The program is running; pause it first.", received=self._session.snapshot.text)

    # ---- what happens

    def _begin_with(self, a: Message) -> None:
        if a.get("stopOnEntry"):
            self._session.aside(self._stops.stop_soon)

    def _start(self, walker: Walker) -> None:
        self._ready = True
        self._look(walker.snapshot)
        if self._host is not None:
            self._host.changed()

    def _again(self, walker: Walker) -> None:
        self._seen = None
        self._look(walker.snapshot)

    def _leave(self, walker: Walker) -> None:
        walker.forget(self._look)
        self._stops.close(walker)

    def _look(self, snapshot: Snapshot) -> None:
        """Tell the client of a snapshot; called in the worker's thread."""
        if not self._ready or self._closed:
            return
        for row in self._stops.look_again():
            self.event("breakpoint", {"reason": "changed", "breakpoint": row})
        if snapshot.closed:
            self.event("terminated", {})
        elif snapshot.state == "paused" or (snapshot.state == "done" and not self._goes_on):
            self._stands(snapshot)
        elif self._seen is not None:
            self._seen = None
            self._known.forget()
            self.event("continued", {"threadId": THREAD, "allThreadsContinued": True})

    @property
    def _goes_on(self) -> bool:
        """Whether what asked for the run goes on when it is over."""
        return self._session.waited_for or (self._host is not None and self._host.goes_on)

    def _stands(self, snapshot: Snapshot) -> None:
        before, self._seen = self._seen, snapshot
        if before is not None:
            if (before.at, before.run) == (snapshot.at, snapshot.run) and before.error is snapshot.error:
                return
            edited = before.frames == snapshot.frames and snapshot.error is None
            if edited and self._writes:
                return  # its response says it
            if edited and self._client.get("supportsInvalidatedEvent"):
                self.event("invalidated", {"areas": ["variables"], "threadId": THREAD})
                return
            self._known.forget()
            self.event("continued", {"threadId": THREAD, "allThreadsContinued": True})
        body: Message = {
            "reason": "exception" if snapshot.error is not None else self._stops.kind(snapshot.stop),
            "description": snapshot.reason, "threadId": THREAD, "allThreadsStopped": True,
        }  # fmt: skip
        if snapshot.error is not None:
            body["text"] = str(snapshot.error)
        hit = self._stops.hit(snapshot.stop)
        if hit:
            body["hitBreakpointIds"] = hit
        if self._stops.entry.enabled:
            self._stops.entry.enabled = False
            self._session.slip(self._stops.entered)
        self.event("stopped", body)

    def _say(self, text: str, source: Source, line: int) -> None:
        body: Message = {"category": "console", "output": text + "\n"}
        if line:
            body.update(source=source, line=line)
        self.event("output", body)

    def _around(self) -> Mapping[str, Any]:
        around = self._session.around
        return vars(sys.modules["__main__"]) if around is None else around


def _to_start(walker: Walker, depth: int) -> Snapshot:
    """Back to where a frame was entered."""
    tape = walker.tape
    scope = tape.machine.stack[depth].scope
    while tape.can_back and any(frame.scope is scope for frame in tape.last().stack):
        tape.back()
    return walker.stand(Stop(StopKind.RESTART_BLOCK, Direction.BACKWARD))


def _refused(text: str) -> Message:
    shown = text.replace("{", "(").replace("}", ")")  # braces name variables of the message
    return {"success": False, "message": text, "body": {"error": {"id": 1, "format": shown, "showUser": True}}}
