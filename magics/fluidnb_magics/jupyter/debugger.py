"""Fluid programs in JupyterLab's own debugger panel, beside Python in the same kernel.

The panel uses the Debug Adapter Protocol. Requests about the fluid program are handled by the adapter of the session,
all others by the kernel's debugger of Python; a click in the gutter concerns both. JupyterLab shows one thread at a
time: the one that stopped last.

While the panel is on, a click at a line that appended operators is enough: the next run of their program is in a debug
session, and stops there. Without such a click programs run as always.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fluidnb.dap.adapter import THREAD, Adapter
from fluidnb.dap.requests import CAPABILITIES
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session, Stopped, current
from fluidnb.debug.snapshot import Snapshot
from fluidnb.errors import FluidError
from fluidnb.program import Program, default_main_program, hooks
from fluidnb.runtime.program_state import program_state
from fluidnb.values import invalidation as epoch
from fluidnb_magics.jupyter.debugger_breakpoints import CellSources, Clicks, is_fluid
from fluidnb_magics.jupyter.debugger_console import Console
from fluidnb_magics.jupyter.debugger_responses import DebugResponses, Render, refusal, response
from fluidnb_magics.jupyter.kernel_private import DebugChannel, Message

#: Events that the panel understands; it ends with the Python debugger, not with a debug session.
_EVENTS = ("stopped", "continued", "breakpoint", "invalidated")
#: The stops of the panel besides lines; it stops at operators that fail in any case.
_FILTERS = [row for row in CAPABILITIES["exceptionBreakpointFilters"] if row["filter"] == "nan"]


class DebuggerProxy:
    """Proxy between the debugger panel and the kernel."""

    def __init__(
        self, channel: DebugChannel, names: dict[str, Any], render: Render, startups: Callable[[], Iterable[Program]]
    ) -> None:
        self._channel, self._names, self._startups = channel, names, startups
        self._console = Console(channel.meanwhile)
        self._responses = DebugResponses(names, render, self._console, self._report_position)
        self.session: Session | None = None  # the session that the panel shows
        self._adapter: Adapter | None = None
        self._sources = CellSources(default_main_program)
        self._own_session: Session | None = None  # a session that was begun for clicks alone
        self._clicks = Clicks({})
        self._filters: list[str] = []
        self._is_shown = False  # whether the panel shows the thread of the session rather than Python's
        self._is_new = False  # whether the panel was switched on and has not received the position of the session
        self._continues = False  # whether Python continues, and not just to the next line
        self._released: queue.SimpleQueue[None] = queue.SimpleQueue()  # gets an item when the cell need not wait
        self._prompt = hooks.debug_prompt
        self._lock = threading.RLock()

    def install(self) -> None:
        """Attach to the debug channel, and to sessions that begin."""
        self._clicks = Clicks(self._channel.breakpoints)
        self._channel.attach(self.respond, self._on_python_event)
        self._prompt = hooks.debug_prompt
        hooks.debug_began, hooks.debug_prompt = self._began, self._prompt_for_runs
        for path in filter(is_fluid, self._clicks):  # Python may have them, as after a restart of the kernel
            arguments = {"source": {"path": path}, "breakpoints": []}
            self._channel.post_to_python(
                {"type": "request", "seq": 0, "command": "setBreakpoints", "arguments": arguments}
            )

    def remove(self) -> None:
        """Detach from the channel and from sessions."""
        self._channel.detach()
        hooks.debug_began = None
        if hooks.debug_prompt == self._prompt_for_runs:
            hooks.debug_prompt = self._prompt
        self._drop()
        self._released.put(None)
        self._close_own_session()

    def _began(self, session: Session) -> None:
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
            self._adapter = Adapter(self._emit, session, self._sources)
            self._request("initialize", clientID="jupyterlab")
            self._set_breakpoints()
            self._request("setExceptionBreakpoints", filters=self._filters)
            self._request("configurationDone")
            session.post_between_steps(Debugger.observe, self._moved)
            return self._adapter

    def _drop(self) -> None:
        """Show no session."""
        with self._lock:
            if self.session is not None and self._adapter is not None and not self.session.closed:
                self._adapter.close()
                self.session.post_between_steps(Debugger.forget, self._moved)
            self._adapter = self.session = None
            self._is_shown = False

    def _close_own_session(self) -> None:
        """End a session that was begun for clicks alone, unless a run is in it, or the user set breakpoints."""
        session, self._own_session = self._own_session, None
        if session is not None and not session.closed and not session.breakpoints and not session.waited_for:
            session.close()

    def _request(self, command: str, **arguments: Any) -> Message:
        assert self._adapter is not None
        return self._adapter.handle({"type": "request", "seq": 0, "command": command, "arguments": arguments})

    def _set_breakpoints(self) -> None:
        for path in self._clicks:
            self._clicks.set_in(path, self._sources, self._request)

    # ---- events

    def _emit(self, event: Message) -> None:
        """Forward events of the adapter to the panel."""
        name = event["event"]
        # The panel has no step back, so that there is nothing to do in it at the end of a run.
        if name in _EVENTS and self._channel.started and (name != "stopped" or self._is_paused):
            if name in ("stopped", "continued"):
                self._is_shown = name == "stopped"
            self._channel.send(event)

    def _moved(self, snapshot: Snapshot) -> None:
        """Observer of the session: report to the panel when its thread has continued."""
        if snapshot.state == "done" or snapshot.closed:
            self._report_continued()

    def _report_continued(self) -> None:
        if self._is_shown:
            body = {"threadId": THREAD, "allThreadsContinued": True}
            self._emit({"type": "event", "seq": 0, "event": "continued", "body": body})

    def _on_python_event(self, event: Message) -> None:
        """Handle an event of the Python debugger: after its continue, the session is shown again."""
        if event["event"] == "stopped":
            self._is_shown = False
        elif event["event"] == "continued" and self._continues:
            self._continues = False
            self._report_position()

    def _report_position(self) -> None:
        """Report the position of the session again, if it is paused."""
        if self._is_paused and self._adapter is not None:
            self._report_continued()
            self._adapter.report_again()

    @property
    def _is_paused(self) -> bool:
        snapshot = None if self.session is None else self.session.snapshot
        return snapshot is not None and snapshot.state == "paused" and not snapshot.closed

    # ---- requests

    async def respond(self, request: Message) -> Any:
        """The response to a request of the panel."""
        command, arguments = request.get("command", ""), request.get("arguments") or {}
        adapter = self._follow(current()) if self._channel.started else None
        both: Callable[[Message], Awaitable[Any]] | None = getattr(self, f"_both_{command}", None)
        if both is not None:
            return await both(request)
        if adapter is not None:
            if self._is_meant(command, arguments):
                return await self._handle(adapter, {**request, "arguments": {**arguments, "threadId": THREAD}})
            copied = {"arguments": {"frameId": arguments.get("srcFrameId")}}
            if adapter.owns(request) or adapter.owns(copied):
                return await self._handle(adapter, request)
        if command in ("continue", "next", "stepIn", "stepOut"):
            self._continues = command == "continue"
        return await self._channel.request_python(request)

    def _is_meant(self, command: str, arguments: Message) -> bool:
        """Whether a request without a thread or frame means the session's thread.

        Before it continues, and between the events of a step, JupyterLab names thread 1 and no frame.
        """
        state = "" if self.session is None else self.session.snapshot.state
        python = self._channel.python_is_paused
        if command == "evaluate":
            line = str(arguments.get("expression", "")).lstrip()
            return line.startswith("%fluid ") or (state == "paused" and not python and not arguments.get("frameId"))
        if command == "stackTrace":
            return not python
        if command in ("next", "stepIn", "stepOut"):
            return state == "paused" and not python
        if command == "continue":
            return state == "paused" and (self._is_shown or not python)
        # A run is reported as running only after a while.
        return command == "pause" and (state == "running" or (state == "paused" and not self._is_shown))

    async def _handle(self, adapter: Adapter, request: Message) -> Message:
        session = self.session
        assert session is not None
        if request["command"] == "pause":
            session.pause()
            return response(request, {})
        if request["command"] == "continue":
            self._report_continued()
            if session.snapshot.error is not None and session.waited_for and session.on_stop is None:
                self._released.put(None)  # it cannot continue: the run raises the error of the operator
                return response(request, {"allThreadsContinued": True})
        return await self._responses.respond(adapter, session, request)

    # ---- requests that concern both debuggers

    async def _both_initialize(self, request: Message) -> Any:
        self._is_new = True
        result = await self._channel.request_python(request)
        if not self._channel.started:  # ipykernel chose a port that another process has taken since
            self._channel.change_port()
            result = await self._channel.request_python(request)
        if result.get("body"):
            filters = result["body"].setdefault("exceptionBreakpointFilters", [])
            filters += _FILTERS
        return result

    async def _both_disconnect(self, request: Message) -> Any:
        """A closed panel: a run that waits for it finishes, other sessions stay paused."""
        self._clicks, self._filters = Clicks({}), []
        self._drop()  # its breakpoints go with the adapter
        result = await self._channel.request_python(request)
        self._released.put(None)
        self._close_own_session()
        return result

    async def _both_setBreakpoints(self, request: Message) -> Any:
        arguments = request["arguments"]
        path = arguments["source"]["path"]
        self._clicks.set(path, arguments.get("breakpoints") or [])
        epoch.ask()  # runs check again whether they stop
        if is_fluid(path):  # without a session yet, a click waits for the next run
            await self._channel.request_python({**request, "arguments": {**arguments, "breakpoints": []}})
            source = arguments["source"]
            python = [{"verified": True, "source": source, **p} for p in arguments.get("breakpoints") or []]
        else:
            result = await self._channel.request_python(request)
            python = result["body"]["breakpoints"] if result.get("success") else []
        fluid = {} if self._adapter is None else self._clicks.set_in(path, self._sources, self._request)
        return response(request, {"breakpoints": self._clicks.merge(path, python, fluid)})

    async def _both_setExceptionBreakpoints(self, request: Message) -> Any:
        arguments = request.get("arguments") or {}
        fluid = [row["filter"] for row in _FILTERS]
        self._filters = [name for name in arguments.get("filters", ()) if name in fluid]
        if self._adapter is not None:
            self._request("setExceptionBreakpoints", filters=self._filters)
        rest = [name for name in arguments.get("filters", ()) if name not in fluid]
        return await self._channel.request_python({**request, "arguments": {**arguments, "filters": rest}})

    async def _both_debugInfo(self, request: Message) -> Any:
        result = await self._channel.request_python(request)
        body = result["body"]
        known = {row["source"]: row["breakpoints"] for row in body["breakpoints"]}
        known.update({path: [{"line": line} for line in self._clicks.shown(path)] for path in self._clicks})
        body["breakpoints"] = [{"source": path, "breakpoints": points} for path, points in known.items()]
        if self._channel.started and self._is_paused:
            threads = body["stoppedThreads"]
            body["stoppedThreads"] = [THREAD, *threads] if self._is_shown else [*threads, THREAD]
        return result

    async def _both_threads(self, request: Message) -> Any:
        result = await self._channel.request_python(request)
        if self._adapter is not None and result.get("body"):
            result["body"]["threads"] += self._request("threads")["body"]["threads"]
        return result

    async def _both_modules(self, request: Message) -> Any:
        """The last request of a panel that is switched on: it needs the earlier events again.

        It requests frames after this response, and is ready by then. In between it shows the globals, so that the same
        frame again would change nothing: a continued event comes first. It sends the same request after each cell; a
        continued event would then lose what is clicked at that moment.
        """
        result = await self._channel.request_python(request)
        if self._is_new:
            self._is_new = False
            self._report_position()
        return result

    async def _both_source(self, request: Message) -> Any:
        result = await self._channel.request_python(request)
        await self._console.delay()
        if self._adapter is None or result.get("success"):
            return result
        path = ((request.get("arguments") or {}).get("source") or {}).get("path") or ""
        try:
            return response(request, {"content": self._sources.text_of(path)})
        except FluidError as error:
            return refusal(request, str(error))

    # ---- runs

    def before_run(self, program: Program) -> None:
        """Run a program in a debug session when a click stops in it, and as always when none does."""
        if not self._channel.started:
            return
        clicked = not any(program is s for s in self._startups()) and self._clicks.stop(program)
        own = self._own_session
        if own is not None and (own.closed or (own.program is program and not clicked)):
            self._close_own_session()
        if self.session is not None and self.session.program is program and not self.session.closed:
            self._set_breakpoints()  # a cell that ran again has other lines
        if clicked and program_state(program.desc).attached is None:
            session = current()
            if session is None or session.program is not program:
                session = self._own_session = Session(program)
                session.around = self._names
            session.__enter__()

    def _prompt_for_runs(self) -> Callable[[Session], None] | None:
        """Session hook: the prompt, or the panel, that controls a paused run."""
        if self._channel.started:
            return self.wait
        return None if self._prompt is None else self._prompt()

    def wait(self, session: Session) -> None:
        """Wait until a paused run has finished, or until the panel is switched off; Ctrl-C ends the cell."""
        try:
            self._wait(session)
        except KeyboardInterrupt:
            raise Stopped(
                "The run was left paused.", received=session.snapshot.text,
                hint="the session is still paused there; %fluid step, back, continue ... resume it.",
            ) from None  # fmt: skip

    def _wait(self, session: Session) -> None:
        self._follow(session)
        over = self._released = queue.SimpleQueue()

        def moved(snapshot: Snapshot) -> None:
            if snapshot.state == "done" or snapshot.closed:
                over.put(None)

        session.post_between_steps(Debugger.observe, moved)
        try:
            while self._channel.started:
                try:
                    over.get(timeout=0.5)  # no frame of Python, in which its debugger could swallow Ctrl-C
                    break
                except queue.Empty:
                    continue
                except KeyboardInterrupt:
                    if session.snapshot.state != "running":
                        raise
                    session.pause()
        finally:
            if not session.closed:
                session.post_between_steps(Debugger.forget, moved)
