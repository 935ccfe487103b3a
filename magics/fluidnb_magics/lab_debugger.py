"""Fluid programs in JupyterLab's own debugger panel, beside Python in the same kernel.

The panel speaks the Debug Adapter Protocol with the kernel. What concerns the fluid program goes to the adapter of the
session, everything else to the kernel's debugger of Python; a click in the gutter goes to both. JupyterLab shows one
thread at a time: the one that stopped last.

While the panel is on, a breakpoint at a line that made operators is enough: the next run of their program is walked by
a session, and stops there. Without such a breakpoint programs run as always.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fluidnb import where
from fluidnb.dap.adapter import THREAD, Adapter
from fluidnb.dap.capabilities import CAPABILITIES
from fluidnb.debug.session import Session, Stopped, current
from fluidnb.debug.snapshot import Snapshot
from fluidnb.debug.walker import Walker
from fluidnb.errors import FluidError
from fluidnb.program import Program, default_main_program, hooks
from fluidnb.values import epoch
from fluidnb_magics.kernel_private import DebugChannel, Message
from fluidnb_magics.lab_sources import CellSources

#: Events that the panel understands; it ends with the Python debugger, not with a session of ours.
_TOLD = ("stopped", "continued", "breakpoint", "invalidated")

#: Where the panel can stop besides at lines; it stands at operators that fail in any case.
_FILTERS = [row for row in CAPABILITIES["exceptionBreakpointFilters"] if row["filter"] == "nan"]

#: Requests for a thread that JupyterLab sends without saying which when it believes that none stands.
_NAMELESS = ("continue", "pause")


class LabDebugger:
    """Stands between the debugger panel and the kernel.

    Args:
        channel: the kernel's debug channel.
        names: the user's names, for expressions and for copies of tensors.
        render: gives the mime bundle of a value, and its metadata.
        startups: gives the startup programs, in which clicks stop nothing.

    Attributes:
        session: the session that the panel shows, or None.
    """

    def __init__(
        self,
        channel: DebugChannel,
        names: dict[str, Any],
        render: Callable[[Any], tuple[dict[str, Any], dict[str, Any]]],
        startups: Callable[[], Iterable[Program]],
    ) -> None:
        self._channel, self._names, self._render, self._startups = channel, names, render, startups
        self.session: Session | None = None
        self._adapter: Adapter | None = None
        self._sources = CellSources(default_main_program)
        self._made: Session | None = None  # the session that exists for the sake of clicks alone
        self._points: dict[str, list[Message]] = {}  # file -> what was clicked there
        self._shown: dict[str, list[int]] = {}  # file -> the lines at which the panel shows them
        self._filters: list[str] = []
        self._ours = False  # whether the panel shows our thread rather than Python's
        self._untold = False  # whether the panel was switched on and does not know yet that the session stands
        self._going_on = False  # whether Python was told to go on, and not just one line
        self._let_go = threading.Event()
        self._prompt = hooks.debug_prompt
        self._lock = threading.RLock()

    # ---- coming and going

    def install(self) -> None:
        """Listen to the panel, and to sessions that begin."""
        self._points = self._channel.breakpoints
        self._channel.borrow(self.answer, self._hear)
        hooks.debug_began, hooks.debug_prompt = self._began, self._asker

    def remove(self) -> None:
        """Leave no trace."""
        self._channel.give_back()
        hooks.debug_began, hooks.debug_prompt = None, self._prompt
        self._drop()
        self._let_go.set()
        if self._made is not None:
            self._made.close()

    def _began(self, session: Session) -> None:
        """A session is there."""
        if self._channel.started:
            self._follow(session)

    def _follow(self, session: Session | None) -> Adapter | None:
        """Show a session in the panel, with the breakpoints that were clicked."""
        with self._lock:
            if session is self.session and (session is None or not session.closed):
                return self._adapter
            self._drop()
            if session is None or session.closed:
                return None
            self.session = session
            self._sources = CellSources(lambda: session.program)
            self._adapter = adapter = Adapter(self._emit, session, self._sources)
            self._ask("initialize", clientID="jupyterlab")
            for path in self._points:
                self._place(path)
            self._ask("setExceptionBreakpoints", filters=self._filters)
            self._ask("configurationDone")
            session.slip(Walker.observe, self._look)
            return adapter

    def _drop(self) -> None:
        """Show no session."""
        with self._lock:
            if self.session is not None and self._adapter is not None and not self.session.closed:
                self._adapter.close()
                self.session.slip(Walker.forget, self._look)
            self._adapter = self.session = None
            self._ours = False

    def _ask(self, command: str, **arguments: Any) -> Message:
        assert self._adapter is not None
        return self._adapter.handle({"type": "request", "seq": 0, "command": command, "arguments": arguments})

    # ---- events

    def _emit(self, event: Message) -> None:
        """Tell the panel what the adapter tells."""
        name = event["event"]
        # The panel has no step back, so that there is nothing to do in it at the end of a run.
        if name in _TOLD and self._channel.started and (name != "stopped" or self._stands):
            if name in ("stopped", "continued"):
                self._ours = name == "stopped"
            self._untold = self._untold and not self._ours
            self._channel.tell(event)

    def _look(self, snapshot: Snapshot) -> None:
        """The panel believes that a thread stands until it is told otherwise; called in the session's thread."""
        if self._ours and snapshot.state in ("done", "closed"):
            body = {"threadId": THREAD, "allThreadsContinued": True}
            self._emit({"type": "event", "seq": 0, "event": "continued", "body": body})

    def _hear(self, event: Message) -> None:
        """The Python debugger has told something: when it has gone on, our thread is shown again."""
        if event["event"] == "stopped":
            self._ours = False
        elif event["event"] == "continued" and self._going_on:
            self._going_on = False
            self._show()

    def _show(self) -> None:
        """Tell the panel once more where our thread stands, if it stands."""
        if self._stands and self._adapter is not None:
            self._adapter.tell()

    @property
    def _stands(self) -> bool:
        return self.session is not None and self.session.snapshot.state == "paused"

    # ---- requests

    async def answer(self, request: Message) -> Any:
        """Answer a request of the panel.

        Args:
            request: the request.

        Returns:
            The response.
        """
        command = request.get("command", "")
        arguments = request.get("arguments") or {}
        adapter = self._follow(current()) if self._channel.started else None
        both: Callable[[Message], Awaitable[Any]] | None = getattr(self, f"_both_{command}", None)
        if both is not None:
            return await both(request)
        if adapter is not None:
            if command in _NAMELESS and self._is_meant(command):
                request = {**request, "arguments": {**arguments, "threadId": THREAD}}
            if adapter.owns(request) or adapter.owns({"arguments": {"frameId": arguments.get("srcFrameId")}}):
                return self._answer_own(adapter, request)
        if command in ("continue", "next", "stepIn", "stepOut"):
            self._going_on = command == "continue"
        return await self._channel.ask_python(request)

    def _is_meant(self, command: str) -> bool:
        """Whether our thread is the one that the panel means: it shows it, or nothing else runs."""
        state = "" if self.session is None else self.session.snapshot.state
        return (command == "continue" and state == "paused" and (self._ours or not self._channel.python_stands)) or (
            command == "pause" and state == "running"
        )

    def _answer_own(self, adapter: Adapter, request: Message) -> Message:
        command, arguments = request["command"], request.get("arguments") or {}
        session = self.session
        assert session is not None
        try:
            if command == "richInspectVariables":
                data, metadata = self._render(session[arguments["variableName"]])
                return _response(request, {"data": data, "metadata": metadata})
            if command == "copyToGlobals":
                self._names[_name(arguments["dstVariableName"])] = session[arguments["srcVariableName"]]
                return _response(request, {})
        except FluidError as error:
            return _refusal(request, error)
        if command == "continue" and session.snapshot.error is not None and session.waited_for:
            self._let_go.set()  # there is no way on: the run raises what the operator raised
            return _response(request, {"allThreadsContinued": False})
        return adapter.handle(request)

    # ---- requests that concern both

    async def _both_initialize(self, request: Message) -> Any:
        response = await self._channel.ask_python(request)
        self._untold = True
        body = response.get("body") if isinstance(response, dict) else None
        if body is not None:
            body["exceptionBreakpointFilters"] = [*body.get("exceptionBreakpointFilters", ()), *_FILTERS]
        return response

    async def _both_disconnect(self, request: Message) -> Any:
        """The panel is switched off: a run that waits for it goes on to its end, other sessions stay where they are."""
        made, self._made = self._made, None
        self._points, self._shown, self._filters = {}, {}, []
        self._drop()  # its breakpoints go with the adapter
        response = await self._channel.ask_python(request)
        self._let_go.set()
        if made is not None and not made.waited_for:
            made.close()
        return response

    async def _both_setBreakpoints(self, request: Message) -> Any:
        arguments = request["arguments"]
        path, points = arguments["source"]["path"], arguments.get("breakpoints") or []
        self._points[path] = points
        epoch.value += 1  # runs look again whether they stop
        response = await self._channel.ask_python(request) or {}
        python = (response.get("body") or {}).get("breakpoints") or [{"verified": False} for _ in points]
        mine = self._place(path)
        merged = [mine.get(p["line"]) or other for p, other in zip(points, python, strict=False)]
        self._shown[path] = [m.get("line", p["line"]) for m, p in zip(merged, points, strict=False)]
        return _response(request, {"breakpoints": merged})

    def _place(self, path: str) -> dict[int, Message]:
        """Set the breakpoints of a file in the session that the panel shows.

        In a ``%%fluid`` cell a click above an operator means the operator; elsewhere it means Python, unless the very
        line made one.

        Returns:
            The lines that were clicked -> a ``Breakpoint`` of the protocol, where the program can stop.
        """
        if self._adapter is None:
            return {}
        points = self._points[path]
        if path not in where.cell_names:
            points = [p for p in points if self._sources.ops_at(path, p["line"])]
        response = self._ask("setBreakpoints", source={"path": path}, breakpoints=points)
        rows = zip(points, response["body"]["breakpoints"], strict=True) if response["success"] else ()
        return {p["line"]: row for p, row in rows if row["verified"]}

    async def _both_setExceptionBreakpoints(self, request: Message) -> Any:
        arguments = request.get("arguments") or {}
        ours = {f["filter"] for f in _FILTERS}
        self._filters = [f for f in arguments.get("filters", ()) if f in ours]
        if self._adapter is not None:
            self._ask("setExceptionBreakpoints", filters=self._filters)
        rest = [f for f in arguments.get("filters", ()) if f not in ours]
        return await self._channel.ask_python({**request, "arguments": {**arguments, "filters": rest}})

    async def _both_debugInfo(self, request: Message) -> Any:
        response = await self._channel.ask_python(request)
        body = response["body"]
        known = {row["source"]: row["breakpoints"] for row in body["breakpoints"]}
        known.update({path: [{"line": line} for line in lines] for path, lines in self._shown.items()})
        body["breakpoints"] = [{"source": path, "breakpoints": points} for path, points in known.items()]
        if self._channel.started and self._stands and self._adapter is not None and not self._untold:
            threads, mine = body["stoppedThreads"], [THREAD]
            body["stoppedThreads"] = mine + threads if self._ours else threads + mine
        return response

    async def _both_threads(self, request: Message) -> Any:
        response = await self._channel.ask_python(request)
        if self._adapter is not None and isinstance(response, dict) and response.get("body"):
            response["body"]["threads"] += self._ask("threads")["body"]["threads"]
        return response

    async def _both_modules(self, request: Message) -> Any:
        """What the panel asks last after it was switched on: now it can show a session that stands already."""
        response = await self._channel.ask_python(request)
        if self._untold:
            self._untold = False
            self._show()
        return response

    async def _both_source(self, request: Message) -> Any:
        response = await self._channel.ask_python(request)
        if self._adapter is None or (isinstance(response, dict) and response.get("success")):
            return response
        path = ((request.get("arguments") or {}).get("source") or {}).get("path") or ""
        try:
            return _response(request, {"content": self._sources.text_of(path)})
        except FluidError as error:
            return _refusal(request, error)

    # ---- runs

    def before_run(self, program: Program) -> None:
        """Let a program that is about to run be walked when a click stops in it; let it run as always when none does.

        Args:
            program: the program.
        """
        made, attached = self._made, program.desc.prepared.get("debugger")
        if made is not None and made.program is program:
            if not made.closed and self._is_clicked(made.program):
                return
            self._made = None
            if not made.closed and not made.breakpoints and not made.waited_for:
                made.close()
        if self.session is not None and self.session.program is program:
            for path in self._points:  # a cell that ran again has other lines
                self._place(path)
        if attached is not None or not self._channel.started or not self._is_clicked(program):
            return
        session = current()
        if session is None or session.program is not program:
            session = self._made = Session(program)
            session.around = self._names
        session.__enter__()

    def _is_clicked(self, program: Program) -> bool:
        if any(program is startup for startup in self._startups()):
            return False
        sources = CellSources(lambda: program)
        for path, points in self._points.items():
            last = max(sources.lines(path), default=0)
            for point in points:
                exact = path not in where.cell_names
                if sources.ops_at(path, point["line"]) if exact else point["line"] <= last:
                    return True
        return False

    def _asker(self) -> Callable[[Session], None] | None:
        """The hook of sessions: who is asked how a run that stands still goes on."""
        if self._channel.started:
            return self.wait
        return None if self._prompt is None else self._prompt()

    def wait(self, session: Session) -> None:
        """Wait until a run that stands still has been brought to its end, from wherever; or until the panel lets go.

        Args:
            session: the session.

        Raises:
            Stopped: the user has interrupted the kernel instead; the session stands as it did.
        """
        self._follow(session)
        self._let_go.clear()
        over = self._let_go

        def look(snapshot: Snapshot) -> None:
            if snapshot.state in ("done", "closed"):
                over.set()

        session.post("observe", look)
        try:
            while not over.wait(0.2) and self._channel.started:
                pass
        except KeyboardInterrupt:
            raise Stopped(
                "The run was interrupted while it stood still.", received=session.snapshot.text,
                hint="the session stands there still; %fluid step, back, continue ... go on from here.",
            ) from None  # fmt: skip
        finally:
            if not session.closed:
                session.post("forget", look)


def _name(text: str) -> str:
    """A name for a copy of a variable: ``h.w_0`` is no name in Python, ``h_w_0`` is.

    Example:
        >>> _name("h.w_0@GRAD"), _name("2d")
        ('h_w_0_GRAD', '_2d')
    """
    name = "".join(c if c.isidentifier() or c.isdigit() else "_" for c in text)
    return name if name.isidentifier() else f"_{name}"


def _response(request: Message, body: Message) -> Message:
    return {
        "type": "response", "seq": 0, "request_seq": request["seq"], "command": request["command"], "success": True,
        "body": body,
    }  # fmt: skip


def _refusal(request: Message, error: FluidError) -> Message:
    return {**_response(request, {}), "success": False, "message": str(error).partition("\n")[0]}
