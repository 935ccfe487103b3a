"""A debug adapter: answers the requests of one client of a debug session, whatever carries its messages."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from fluidnb.dap.breakpoints import ClientBreakpoints
from fluidnb.dap.expressions import assign, target
from fluidnb.dap.references import BASE, END, References
from fluidnb.dap.requests import CAPABILITIES, checked_arguments, shifted, shifts
from fluidnb.dap.role_adapter import SETTINGS, RoleAdapter
from fluidnb.dap.sources import Source, Sources
from fluidnb.dap.values import Expandable, Row, VariableGroup, children, frame_scopes, variable
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import FrameLocation, OpLocation, Snapshot, op_location
from fluidnb.debug.stop import Direction, Stop, StopKind
from fluidnb.debug.view import View
from fluidnb.distributed.attachment import attach, role_keys, running
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpValueError, near

Message = dict[str, Any]
T = TypeVar("T")

#: The one thread that clients see.
THREAD = BASE
Move = Callable[[Debugger], Snapshot]
#: Words of a client's console that go from role to role of a training.
_ROLE_WORDS = ("roles", "attach")

#: request -> what the debugger does
_MOVES: dict[str, Move] = {
    "next": Debugger.next, "stepIn": Debugger.step, "stepOut": Debugger.out, "continue": Debugger.continue_,
    "stepBack": Debugger.step_back_over, "reverseContinue": Debugger.reverse_continue, "restart": Debugger.restart,
}  # fmt: skip


class Debuggee(Protocol):
    """The process of the program, which a client may end."""

    @property
    def continues(self) -> bool:
        """Whether it continues by itself after a run, as a script does."""

    def terminate(self) -> None:
        """End the run, and what called it."""

    def client_ready(self) -> None:
        """Notice that a client is ready."""

    def raise_error(self, error: BaseException) -> None:
        """Let the run that is paused at an operator that failed raise its error."""


class Adapter:
    """Answers the requests of one client, and sends it events.

    Several may serve one session: each reports every stop, and has its own breakpoints.

    Args:
        emit: called with each event; also in the worker thread of the session, so it must not wait.
        debuggee: what a client may end; None where there is nothing.

    Source: Debug Adapter Protocol, specification 1.x.
    """

    def __init__(
        self, emit: Callable[[Message], None], session: Session, sources: Sources, debuggee: Debuggee | None = None
    ) -> None:
        self._emit, self._session, self._sources, self._debuggee = emit, session, sources, debuggee
        self._references = References()
        self._breakpoints = ClientBreakpoints(sources, self._log, self._around)
        self._seq, self._sending = itertools.count(1), threading.Lock()
        self._client: Mapping[str, Any] = {}
        self._shifts: dict[str, int] = {}
        self._ready = self._closed = False
        self._writes = False  # whether this client is assigning to a variable right now
        self._seen: Snapshot | None = None  # where the client believes it is paused; None while it believes it runs
        self._then: list[Callable[[], None]] = []
        self._role: RoleAdapter | None = None
        self._settings: dict[str, Message] = {}  # requests that set something, the newest of each kind
        self.stops_at_errors = True
        session.do_between_steps(Debugger.observe, self._observe)

    # ---- messages

    def handle(self, message: Message) -> Message:
        """The response to a request; what it requests has begun when this returns."""
        answers: list[Message] = []
        self.answer(message, answers.append)
        return answers[0]

    def answer(self, message: Message, send: Callable[[Message], None]) -> None:
        """Answer a request, and only then execute it, so that events follow the response."""
        role = self._followed_role()
        self._note_setting(message)
        if role is None or _is_answered_here(message):
            self._answer_here(message, send)
            self._followed_role()
            return
        if message.get("command") in SETTINGS:
            self._answer_here(message, lambda response: None)
        try:
            role.answer(message, lambda response: self._emit_again(response, send))
        except FluidError as error:
            send({**self._head(message), **_refused(str(error))})

    def _answer_here(self, message: Message, send: Callable[[Message], None]) -> None:
        """Answer a request by this adapter, then execute it."""
        self._then = []
        send(self._response(message))
        then, self._then = self._then, []
        for act in then:
            try:
                act()
            except FluidError as error:  # the session was closed meanwhile
                self.output(f"{error}\n", "stderr")

    def owns(self, message: Message) -> bool:
        """Whether a request is about our thread, frames or values, not those of a Python debugger beside this one."""
        arguments = message.get("arguments")
        keys = ("threadId", "frameId", "variablesReference", "sourceReference")
        numbers = [arguments.get(key) for key in keys] if isinstance(arguments, Mapping) else []
        return any(isinstance(n, int) and BASE <= n < END for n in numbers)

    def event(self, name: str, body: Mapping[str, Any] | None = None) -> None:
        """Send an event."""
        message: Message = {"type": "event", "event": name}
        if body is not None:
            message["body"] = shifted(dict(body), self._shifts, -1)
        with self._sending:
            self._emit({"seq": next(self._seq), **message})

    def output(self, text: str, category: str = "stdout") -> None:
        """Show text in the client's console."""
        self.event("output", {"category": category, "output": text})

    def report_again(self) -> None:
        """Send the stop of a paused session once more."""
        self._session.do_between_steps(self._observe_again)

    def end(self, status: int = 0) -> None:
        """Report that the script has ended."""
        self.event("exited", {"exitCode": status})
        self.event("terminated", {})

    def close(self) -> None:
        """Leave the session as it is, without this client's breakpoints."""
        if self._closed:
            return
        self._closed = True
        if not self._session.closed:
            self._session.do_between_steps(self._leave)

    @property
    def ready(self) -> bool:
        """Whether the client has finished its configuration."""
        return self._ready

    # ---- roles in other processes

    def _followed_role(self) -> RoleAdapter | None:
        """The adapter in the process of the role that the session is in; None where that is this process."""
        role = self._session.role
        if role is None or role.there is None:
            self._role = None
        elif self._role is None or self._role.role is not role:
            self._role = RoleAdapter(role, self._session, self._settings.values(), self._emit_again)
        return self._role

    def _note_setting(self, message: Message) -> None:
        """Keep a request that sets something, for the adapters of roles."""
        command, arguments = message.get("command"), message.get("arguments")
        if command in SETTINGS:
            source = arguments.get("source") if isinstance(arguments, dict) else None
            self._settings[f"{command} {source}"] = message

    def _emit_again(self, message: Message, send: Callable[[Message], None] | None = None) -> None:
        """Send what the adapter of a role has sent, with a number of this one."""
        with self._sending:
            (self._emit if send is None else send)({**message, "seq": next(self._seq)})

    # ---- life cycle

    def _response(self, message: Message) -> Message:
        command, arguments = message.get("command"), message.get("arguments")
        try:
            if not isinstance(command, str) or message.get("type") != "request":
                raise OpValueError("That is no request.", expected="type request, and a command", received=str(command))
            if not isinstance(arguments, dict | None):
                raise OpValueError("The arguments are no object.", expected="an object", received=str(arguments)[:80])
            do = getattr(self, f"do_{command}", None)
            if do is None and command not in _MOVES:
                raise NotFound(f"There is no request {command} here.", received=command)
            arguments = shifted(checked_arguments(command, arguments or {}), self._shifts)
            body = self._move(command, arguments) if do is None else do(arguments)
            body = shifted(body, self._shifts, -1)
            outcome: Message = {"success": True} if body is None else {"success": True, "body": body}
        except KeyError as error:
            outcome = _refused(f"{command} needs {error}.")
        except FluidError as error:
            error.where = None  # the line would be that of the run, which has nothing to do with it
            outcome = _refused(str(error))
        except Exception as error:
            outcome = _refused(f"{type(error).__name__}: {error}")
        return {**self._head(message), **outcome}

    def _head(self, message: Message) -> Message:
        """The beginning of the response to a request."""
        seq = message.get("seq")
        with self._sending:
            return {
                "seq": next(self._seq), "type": "response", "request_seq": seq if isinstance(seq, int) else 0,
                "command": str(message.get("command")),
            }  # fmt: skip

    def do_initialize(self, a: Message) -> Message:
        """Report the capabilities."""
        self._client, self._shifts = a, shifts(a)
        self._then.append(lambda: self.event("initialized"))
        return CAPABILITIES

    def do_attach(self, a: Message) -> None:
        """Attach to the session."""
        if a.get("stopOnEntry"):
            self._session.do_between_steps(self._breakpoints.stop_at_entry)
        if a.get("role"):
            attach(self._session, a["role"])

    do_launch = do_attach  # the program of the session exists already

    def do_configurationDone(self, a: Message) -> None:
        """Report the stop: the client has set its breakpoints."""
        self._then.append(lambda: self._session.do_between_steps(self._start))

    def do_disconnect(self, a: Message) -> None:
        """Leave, and end the run where that is requested."""
        if a.get("terminateDebuggee") and self._debuggee is not None:
            self._then.append(self._debuggee.terminate)
        self.close()

    def do_terminate(self, a: Message) -> None:
        """End the run."""
        if self._debuggee is None:
            raise EnforceNotMet("Nothing here can be ended.", hint="disconnect leaves the session as it is.")
        self._then.append(self._debuggee.terminate)

    def do_threads(self, a: Message) -> Message:
        """List the program as the only thread."""
        return {"threads": [{"id": THREAD, "name": "fluid program"}]}

    def do_pause(self, a: Message) -> None:
        """Pause after the current operator, or where the next run begins."""
        self._session.pause()
        if self._session.snapshot.state in ("idle", "done"):
            self._session.do_between_steps(self._breakpoints.stop_at_entry)

    def do_setBreakpoints(self, a: Message) -> Message:
        """Set the breakpoints of a source."""
        wanted = a.get("breakpoints") or [{"line": line} for line in a.get("lines") or ()]
        return {"breakpoints": self._session.do_between_steps(self._breakpoints.set_lines, a["source"], wanted)}

    def do_setFunctionBreakpoints(self, a: Message) -> Message:
        """Stop before operators of some types."""
        return {"breakpoints": self._session.do_between_steps(self._breakpoints.set_functions, a["breakpoints"])}

    def do_setDataBreakpoints(self, a: Message) -> Message:
        """Stop after steps that write some variables."""
        return {"breakpoints": self._session.do_between_steps(self._breakpoints.set_data, a["breakpoints"])}

    def do_setExceptionBreakpoints(self, a: Message) -> Message:
        """Stop at NaN, and at operators that fail."""
        filters = [{"filterId": name} for name in a.get("filters") or ()] + list(a.get("filterOptions") or ())
        self.stops_at_errors = any(row["filterId"] == "error" for row in filters)
        return {"breakpoints": self._session.do_between_steps(self._breakpoints.set_exceptions, filters)}

    # ---- stepping

    def _move(self, request: str, a: Message) -> Message | None:
        move = _MOVES[request]
        if request == "stepBack" and a.get("granularity") == "instruction":
            move = Debugger.back
        self._require_paused()
        error, debuggee = self._session.snapshot.error, self._debuggee
        if request == "continue" and error is not None and debuggee is not None and self._session.waited_for:
            self._then += [lambda: self._session.do_between_steps(self._resume), lambda: debuggee.raise_error(error)]
        else:
            self._then.append(lambda: self._start_move(move))
        return {"allThreadsContinued": True} if request == "continue" else None

    def do_restartFrame(self, a: Message) -> None:
        """Go back to where a frame was entered."""
        depth = self._depth(a["frameId"])
        self._require_paused()
        self._then.append(lambda: self._start_move(lambda debugger: _to_block_start(debugger, depth)))

    def _start_move(self, move: Move) -> None:
        self._session.post(self._move_and_forget, move).add_done_callback(self._report_failure)

    def _report_failure(self, future: Future[Any]) -> None:
        error = future.exception()
        if error is not None:
            self.output(f"{error}\n", "stderr")

    def _move_and_forget(self, debugger: Debugger, move: Move) -> Snapshot:
        self._resume(debugger)
        return move(debugger)

    def _resume(self, debugger: Debugger) -> None:
        """Note that the client believes from now on that the program runs; called in the worker thread."""
        self._seen = None
        self._references.forget()

    def _require_paused(self) -> None:
        if self._session.closed:
            raise EnforceNotMet("The session is closed.")
        if self._session.snapshot.state not in ("paused", "done"):
            raise EnforceNotMet("The program is running; pause it first.", received=self._session.snapshot.text)

    # ---- frames and scopes

    def do_stackTrace(self, a: Message) -> Message:
        """List the blocks that are being run, innermost first, with their iterations."""
        start, levels = max(0, a.get("startFrame") or 0), max(0, a.get("levels") or 0)

        def read(debugger: Debugger) -> Message:
            frames = list(enumerate(debugger.snapshot.frames))[::-1]
            wanted = frames[start : start + levels if levels else None]
            return {"stackFrames": [self._frame(debugger, i, f) for i, f in wanted], "totalFrames": len(frames)}

        return self._while_paused(read)

    def _while_paused(self, act: Callable[[Debugger], T]) -> T:
        """The result of an action on the debugger; refused while the program runs."""

        def checked(debugger: Debugger) -> T:
            if debugger.snapshot.state not in ("paused", "done"):
                raise EnforceNotMet("The program is running; pause it first.", received=debugger.snapshot.text)
            return act(debugger)

        return self._session.do_between_steps(checked)

    def _frame(self, debugger: Debugger, depth: int, frame: FrameLocation) -> Row:
        stack = debugger.tape.interpreter.stack
        op = frame.op or _last_op(debugger, depth)
        where = f"block {frame.block}" + (f", iteration {frame.iteration}" if stack[depth].control is not None else "")
        at = f"{frame.op.index} {frame.op.type}" if frame.op is not None else "the end"
        number = self._references.named(("frame", depth), depth)
        row: Row = {"id": number, "name": f"{where}: {at}", "line": 0, "column": 0}
        if op is not None:
            source, line = self._sources.locate(op)
            row.update(source=source, line=line, column=1 if line else 0)
        return row

    def do_scopes(self, a: Message) -> Message:
        """List what the operator reads and writes, then each scope outwards."""
        depth = self._depth(a["frameId"])

        return {"scopes": self._while_paused(lambda debugger: frame_scopes(debugger, depth, self._references))}

    def do_variables(self, a: Message) -> Message:
        """List what is in a scope or a value, or a part of it."""
        thing = self._references.find(a["variablesReference"])
        if not isinstance(thing, Expandable | VariableGroup):
            raise NotFound("That has no children.", received=a["variablesReference"])
        kind, start, count = a.get("filter") or "", max(0, a.get("start") or 0), max(0, a.get("count") or 0)
        pages = bool(self._client.get("supportsVariablePaging"))

        return {"variables": self._while_paused(lambda _: children(thing, self._references, kind, start, count, pages))}

    def do_exceptionInfo(self, a: Message) -> Message:
        """Report the error of the next operator."""
        error = self._session.snapshot.error
        if error is None:
            raise NotFound("Nothing has failed here.", received=self._session.snapshot.reason)
        name = type(error).__name__
        return {
            "exceptionId": name, "description": str(error), "breakMode": "always",
            "details": {"message": str(error), "typeName": name},
        }  # fmt: skip

    # ---- expressions and values

    def do_evaluate(self, a: Message) -> Message:
        """Evaluate a Python expression over the program's variables."""
        text = str(a["expression"]).strip()
        word, _, rest = text.partition(" ")
        if a.get("context") == "repl" and word in _ROLE_WORDS and running:
            if word == "attach":
                attach(self._session, rest.strip())
            roles = role_keys(running[-1].plan)
            here = "" if self._session.role is None else self._session.role.name
            lines = [f"{'→' if name == here else ' '} {name}" for name in roles]
            if self._session.there is not None:
                lines.append(self._session.there(_position))
            return {"result": "\n".join(lines), "variablesReference": 0}
        depth = self._depth(a["frameId"]) if a.get("frameId") else -1

        def read(debugger: Debugger) -> Row:
            value = debugger.evaluate(text, self._around(), depth)
            return variable("result", Expandable(value, text), self._references)

        return _result(self._while_paused(read), "result")

    def do_setVariable(self, a: Message) -> Message:
        """Assign to a variable, or to an element of one."""
        thing, name = self._references.find(a["variablesReference"]), str(a["name"])
        if isinstance(thing, VariableGroup):
            return self._set(name, (), str(a["value"]))
        if not isinstance(thing, Expandable) or not thing.root or not name.strip("[]").isdecimal():
            raise OpValueError("That cannot be set.", expected="a variable, or an element of one", received=name)
        return self._set(thing.root, (*thing.index, int(name.strip("[]"))), str(a["value"]))

    def do_setExpression(self, a: Message) -> Message:
        """Assign to a variable, or to a part of one, that an expression names."""
        name, index = target(str(a["expression"]), self._around())
        return self._set(name, index, str(a["value"]), self._depth(a["frameId"]) if a.get("frameId") else -1)

    def _set(self, name: str, index: tuple[Any, ...], text: str, depth: int = -1) -> Message:
        def write(debugger: Debugger) -> Row:
            at = depth if depth >= 0 else len(debugger.tape.interpreter.stack) - 1
            self._writes = True
            try:
                value = assign(debugger, at, name, index, text, self._around())
            finally:
                self._writes = False
            return variable(name, Expandable(value), self._references)

        return _result(self._while_paused(write), "value")

    def do_dataBreakpointInfo(self, a: Message) -> Message:
        """Report whether a variable can have a data breakpoint."""
        name = str(a["name"])
        thing = self._references.find(a["variablesReference"]) if a.get("variablesReference") else None
        if isinstance(thing, Expandable):
            name = thing.root
        elif thing is None:
            name = target(name, self._around())[0]
        known = {var for block in self._session.program.desc.blocks for var in block.vars}
        if name not in known:
            hint = near(name, known)
            return {"dataId": None, "description": f"{a['name']} is not a variable of the program. {hint}".strip()}
        return {"dataId": name, "description": name, "accessTypes": ["write"], "canPersist": True}

    def do_completions(self, a: Message) -> Message:
        """List variables that complete a text."""
        text = str(a["text"])[: max(0, a["column"] - 1)]
        part = next((text[i:] for i in range(len(text)) if all(c.isalnum() or c in "_.@" for c in text[i:])), "")

        def names(debugger: Debugger) -> list[str]:
            return list(View(debugger.tape.interpreter.stack[-1].scope)) if debugger.tape.runs else []

        offered = sorted(name for name in self._session.do_between_steps(names) if part in name)
        offered.sort(key=lambda name: not name.startswith(part))
        at = len(text) - len(part)
        return {"targets": [{"label": n, "type": "variable", "start": at, "length": len(part)} for n in offered[:200]]}

    # ---- sources

    def do_source(self, a: Message) -> Message:
        """Report the text of a source that is not a file."""
        reference = (a.get("source") or {}).get("sourceReference") or a.get("sourceReference") or 0
        return {"content": self._sources.content(reference), "mimeType": "text/plain"}

    def do_loadedSources(self, a: Message) -> Message:
        """List the sources of the program."""
        return {"sources": self._sources.loaded()}

    def do_breakpointLocations(self, a: Message) -> Message:
        """List the lines at which the program can stop."""
        source = a["source"]
        path, first = source.get("path") or source.get("name") or "", a["line"]
        last = a.get("endLine") or first
        return {"breakpoints": [{"line": n} for n in self._sources.lines(path) if first <= n <= last]}

    def _depth(self, frame: Any) -> int:
        depth = self._references.find(frame)
        if not isinstance(depth, int):
            raise NotFound("That is no frame.", received=frame)
        return depth

    # ---- events

    def _start(self, debugger: Debugger) -> None:
        self._ready = True
        self._observe(debugger.snapshot)
        if self._debuggee is not None:
            self._debuggee.client_ready()

    def _observe_again(self, debugger: Debugger) -> None:
        self._seen = None
        self._observe(debugger.snapshot)

    def _leave(self, debugger: Debugger) -> None:
        debugger.forget(self._observe)
        self._breakpoints.close(debugger)

    def _observe(self, snapshot: Snapshot) -> None:
        """Report a snapshot; called in the worker thread."""
        if not self._ready or self._closed:
            return
        for row in self._breakpoints.resolve_again():
            self.event("breakpoint", {"reason": "changed", "breakpoint": row})
        if snapshot.closed:
            self.event("terminated", {})
        elif snapshot.state == "paused" or (snapshot.state == "done" and not self._continues):
            self._report_stop(snapshot)
        elif self._seen is not None:
            self._seen = None
            self._references.forget()
            self.event("continued", {"threadId": THREAD, "allThreadsContinued": True})

    @property
    def _continues(self) -> bool:
        """Whether the caller of the run continues when it is over."""
        return self._session.waited_for or (self._debuggee is not None and self._debuggee.continues)

    def _report_stop(self, snapshot: Snapshot) -> None:
        before, self._seen = self._seen, snapshot
        if before is not None:
            if (before.at, before.run) == (snapshot.at, snapshot.run) and before.error is snapshot.error:
                return
            edited = before.frames == snapshot.frames and snapshot.error is None
            if edited and self._writes:
                return  # the response has the new value
            if edited and self._client.get("supportsInvalidatedEvent"):
                self.event("invalidated", {"areas": ["variables"], "threadId": THREAD})
                return
            self._references.forget()
            self.event("continued", {"threadId": THREAD, "allThreadsContinued": True})
        body: Message = {
            "reason": "exception" if snapshot.error is not None else self._breakpoints.stop_reason(snapshot.stop),
            "description": snapshot.reason, "threadId": THREAD, "allThreadsStopped": True,
        }  # fmt: skip
        if snapshot.error is not None:
            body["text"] = str(snapshot.error)
        hit = self._breakpoints.ids_hit(snapshot.stop)
        if hit:
            body["hitBreakpointIds"] = hit
        if self._breakpoints.entry.enabled:
            self._breakpoints.entry.enabled = False
            self._session.post_between_steps(self._breakpoints.clear_entry)
        self.event("stopped", body)

    def _log(self, text: str, source: Source, line: int) -> None:
        body: Message = {"category": "console", "output": text + "\n"}
        if line:
            body.update(source=source, line=line)
        self.event("output", body)

    def _around(self) -> Mapping[str, Any]:
        around = self._session.around
        return vars(sys.modules["__main__"]) if around is None else around


def _last_op(debugger: Debugger, depth: int) -> OpLocation | None:
    ops = debugger.tape.interpreter.stack[depth].block.ops
    return op_location(ops[-1]) if ops else None


def _result(row: Row, name: str) -> Message:
    kept = ("type", "variablesReference", "indexedVariables", "namedVariables")
    return {name: row["value"]} | {key: row[key] for key in kept if key in row}


def _to_block_start(debugger: Debugger, depth: int) -> Snapshot:
    """Step back to where a frame was entered."""
    tape = debugger.tape
    scope = tape.interpreter.stack[depth].scope
    while tape.can_back and any(frame.scope is scope for frame in tape.last().stack):
        tape.back()
    return debugger.stop(Stop(StopKind.RESTART_BLOCK, Direction.BACKWARD))


def _refused(text: str) -> Message:
    shown = text.replace("{", "(").replace("}", ")")  # braces name variables of the message
    return {"success": False, "message": text, "body": {"error": {"id": 1, "format": shown, "showUser": True}}}


def _position(session: Session) -> str:
    """The position of a session in another process."""
    return session.snapshot.text


def _is_answered_here(message: Message) -> bool:
    """Whether a request is about the client's connection, or about roles, wherever the session is."""
    command, arguments = message.get("command"), message.get("arguments")
    if command != "evaluate" or not isinstance(arguments, dict):
        return command in ("initialize", "attach", "launch", "disconnect", "terminate", "threads")
    word = str(arguments.get("expression")).strip().partition(" ")[0]
    return arguments.get("context") == "repl" and word in _ROLE_WORDS
