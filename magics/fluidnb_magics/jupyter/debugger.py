"""Fluid programs in JupyterLab's own debugger panel, beside Python in the same kernel.

The panel speaks the Debug Adapter Protocol with the kernel. What concerns the fluid program goes to the adapter of the
session, everything else to the kernel's debugger of Python; a click in the gutter goes to both. JupyterLab shows one
thread at a time: the one that stopped last.

While the panel is on, a click at a line that made operators is enough: the next run of their program is walked by a
session, and stops there. Without such a click programs run as always.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fluidnb.dap.adapter import THREAD, Adapter
from fluidnb.dap.capabilities import CAPABILITIES
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session, Stopped, current
from fluidnb.debug.snapshot import Snapshot
from fluidnb.errors import FluidError
from fluidnb.program import Program, default_main_program, hooks
from fluidnb.runtime.program_state import program_state
from fluidnb.values import invalidation as epoch
from fluidnb_magics.jupyter.debugger_breakpoints import Clicks, is_fluid
from fluidnb_magics.jupyter.debugger_console import Console
from fluidnb_magics.jupyter.debugger_responses import LabAnswers, Render, refusal, response
from fluidnb_magics.jupyter.debugger_sources import CellSources
from fluidnb_magics.jupyter.kernel_private import DebugChannel, Message

#: Events that the panel understands; it ends with the Python debugger, not with a session of ours.
_TOLD = ("stopped", "continued", "breakpoint", "invalidated")

#: Where the panel can stop besides at lines; it stands at operators that fail in any case.
_FILTERS = [row for row in CAPABILITIES["exceptionBreakpointFilters"] if row["filter"] == "nan"]


class LabDebugger:
    """Proxy between the debugger panel and the kernel.

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
        render: Render,
        startups: Callable[[], Iterable[Program]],
    ) -> None:
        self._channel, self._names, self._startups = channel, names, startups
        self._console = Console(channel.meanwhile)
        self._answers = LabAnswers(names, render, self._console, self._show)
        self.session: Session | None = None
        self._adapter: Adapter | None = None
        self._sources = CellSources(default_main_program)
        self._made: Session | None = None  # the session that exists for the sake of clicks alone
        self._clicks = Clicks({})
        self._filters: list[str] = []
        self._ours = False  # whether the panel shows our thread rather than Python's
        self._fresh = False  # whether the panel was switched on and has not been told where our thread stands
        self._going_on = False  # whether Python was told to go on, and not just to the next line
        self._over: queue.SimpleQueue[None] = queue.SimpleQueue()  # gets something when nobody need wait
        self._prompt = hooks.debug_prompt
        self._lock = threading.RLock()

    # ---- coming and going

    def install(self) -> None:
        """Listen to the panel, and to sessions that begin."""
        self._clicks = Clicks(self._channel.breakpoints)
        self._channel.borrow(self.answer, self._hear)
        self._prompt = hooks.debug_prompt
        hooks.debug_began, hooks.debug_prompt = self._began, self._asker
        for path in filter(is_fluid, self._clicks):  # Python has them from before, as after a restart of the kernel
            arguments = {"source": {"path": path}, "breakpoints": []}
            self._channel.ask_python_soon(
                {"type": "request", "seq": 0, "command": "setBreakpoints", "arguments": arguments}
            )

    def remove(self) -> None:
        """Leave no trace."""
        self._channel.give_back()
        hooks.debug_began = None
        if hooks.debug_prompt == self._asker:
            hooks.debug_prompt = self._prompt
        self._drop()
        self._over.put(None)
        self._close_made()

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
            self._adapter = Adapter(self._emit, session, self._sources)
            self._ask("initialize", clientID="jupyterlab")
            self._place()
            self._ask("setExceptionBreakpoints", filters=self._filters)
            self._ask("configurationDone")
            session.post_between_steps(Debugger.observe, self._look)
            return self._adapter

    def _drop(self) -> None:
        """Show no session."""
        with self._lock:
            if self.session is not None and self._adapter is not None and not self.session.closed:
                self._adapter.close()
                self.session.post_between_steps(Debugger.forget, self._look)
            self._adapter = self.session = None
            self._ours = False

    def _close_made(self) -> None:
        """End the session that was there for clicks alone, unless a run is in it, or the user has made it theirs."""
        made, self._made = self._made, None
        if made is not None and not made.closed and not made.breakpoints and not made.waited_for:
            made.close()

    def _ask(self, command: str, **arguments: Any) -> Message:
        assert self._adapter is not None
        return self._adapter.handle({"type": "request", "seq": 0, "command": command, "arguments": arguments})

    def _place(self) -> None:
        for path in self._clicks:
            self._clicks.place(path, self._sources, self._ask)

    # ---- events

    def _emit(self, event: Message) -> None:
        """Forwards events of the adapter to the panel."""
        name = event["event"]
        # The panel has no step back, so that there is nothing to do in it at the end of a run.
        if name in _TOLD and self._channel.started and (name != "stopped" or self._stands):
            if name in ("stopped", "continued"):
                self._ours = name == "stopped"
            self._channel.tell(event)

    def _look(self, snapshot: Snapshot) -> None:
        """Reports to the panel that a thread has continued; called in the session's thread."""
        if snapshot.state == "done" or snapshot.closed:
            self._say_gone_on()

    def _say_gone_on(self) -> None:
        if self._ours:
            body = {"threadId": THREAD, "allThreadsContinued": True}
            self._emit({"type": "event", "seq": 0, "event": "continued", "body": body})

    def _hear(self, event: Message) -> None:
        """Handles an event of the Python debugger: after its continue, our thread is shown again."""
        if event["event"] == "stopped":
            self._ours = False
        elif event["event"] == "continued" and self._going_on:
            self._going_on = False
            self._show()

    def _show(self) -> None:
        """Reports again where our thread is paused, if it is."""
        if self._stands and self._adapter is not None:
            self._say_gone_on()
            self._adapter.report_again()

    @property
    def _stands(self) -> bool:
        snapshot = None if self.session is None else self.session.snapshot
        return snapshot is not None and snapshot.state == "paused" and not snapshot.closed

    # ---- requests

    async def answer(self, request: Message) -> Any:
        """Answer a request of the panel.

        Args:
            request: the request.

        Returns:
            The response.
        """
        command, arguments = request.get("command", ""), request.get("arguments") or {}
        adapter = self._follow(current()) if self._channel.started else None
        both: Callable[[Message], Awaitable[Any]] | None = getattr(self, f"_both_{command}", None)
        if both is not None:
            return await both(request)
        if adapter is not None:
            if self._is_meant(command, arguments):
                return await self._ask_ours(adapter, {**request, "arguments": {**arguments, "threadId": THREAD}})
            copied = {"arguments": {"frameId": arguments.get("srcFrameId")}}
            if adapter.owns(request) or adapter.owns(copied):
                return await self._ask_ours(adapter, request)
        if command in ("continue", "next", "stepIn", "stepOut"):
            self._going_on = command == "continue"
        return await self._channel.ask_python(request)

    def _is_meant(self, command: str, arguments: Message) -> bool:
        """Whether a request means our thread, though it names no thread or frame of ours.

        JupyterLab forgets which thread is paused before it continues, and between the events of a move: it names
        thread 1 then, and no frame.
        """
        state = "" if self.session is None else self.session.snapshot.state
        python = self._channel.python_stands
        if command == "evaluate":
            line = str(arguments.get("expression", "")).lstrip()
            return line.startswith("%fluid ") or (state == "paused" and not python and not arguments.get("frameId"))
        if command == "stackTrace":
            return not python
        if command in ("next", "stepIn", "stepOut"):
            return state == "paused" and not python
        if command == "continue":
            return state == "paused" and (self._ours or not python)
        # A run is told as running only after a while.
        return command == "pause" and (state == "running" or (state == "paused" and not self._ours))

    async def _ask_ours(self, adapter: Adapter, request: Message) -> Message:
        session = self.session
        assert session is not None
        if request["command"] == "pause":
            session.pause()
            return response(request, {})
        if request["command"] == "continue":
            self._say_gone_on()
            if session.snapshot.error is not None and session.waited_for and session.on_stop is None:
                self._over.put(None)  # there is no way on: the run raises what the operator raised
                return response(request, {"allThreadsContinued": True})
        return await self._answers.answer(adapter, session, request)

    # ---- requests that concern both debuggers

    async def _both_initialize(self, request: Message) -> Any:
        self._fresh = True
        found = await self._channel.ask_python(request)
        if found.get("body"):
            filters = found["body"].setdefault("exceptionBreakpointFilters", [])
            filters += _FILTERS
        return found

    async def _both_disconnect(self, request: Message) -> Any:
        """Handles a closed panel: a run that waits for it finishes, other sessions stay paused."""
        self._clicks, self._filters = Clicks({}), []
        self._drop()  # its breakpoints go with the adapter
        found = await self._channel.ask_python(request)
        self._over.put(None)
        self._close_made()
        return found

    async def _both_setBreakpoints(self, request: Message) -> Any:
        arguments = request["arguments"]
        path = arguments["source"]["path"]
        self._clicks.set(path, arguments.get("breakpoints") or [])
        epoch.value += 1  # runs look again whether they stop
        if is_fluid(path):  # without a session yet, a click waits for the next run
            await self._channel.ask_python({**request, "arguments": {**arguments, "breakpoints": []}})
            source = arguments["source"]
            python = [{"verified": True, "source": source, **p} for p in arguments.get("breakpoints") or []]
        else:
            found = await self._channel.ask_python(request)
            python = found["body"]["breakpoints"] if found.get("success") else []
        ours = {} if self._adapter is None else self._clicks.place(path, self._sources, self._ask)
        return response(request, {"breakpoints": self._clicks.merge(path, python, ours)})

    async def _both_setExceptionBreakpoints(self, request: Message) -> Any:
        arguments = request.get("arguments") or {}
        ours = [row["filter"] for row in _FILTERS]
        self._filters = [name for name in arguments.get("filters", ()) if name in ours]
        if self._adapter is not None:
            self._ask("setExceptionBreakpoints", filters=self._filters)
        rest = [name for name in arguments.get("filters", ()) if name not in ours]
        return await self._channel.ask_python({**request, "arguments": {**arguments, "filters": rest}})

    async def _both_debugInfo(self, request: Message) -> Any:
        found = await self._channel.ask_python(request)
        body = found["body"]
        known = {row["source"]: row["breakpoints"] for row in body["breakpoints"]}
        known.update({path: [{"line": line} for line in self._clicks.shown(path)] for path in self._clicks})
        body["breakpoints"] = [{"source": path, "breakpoints": points} for path, points in known.items()]
        if self._channel.started and self._stands:
            threads = body["stoppedThreads"]
            body["stoppedThreads"] = [THREAD, *threads] if self._ours else [*threads, THREAD]
        return found

    async def _both_threads(self, request: Message) -> Any:
        found = await self._channel.ask_python(request)
        if self._adapter is not None and found.get("body"):
            found["body"]["threads"] += self._ask("threads")["body"]["threads"]
        return found

    async def _both_modules(self, request: Message) -> Any:
        """Handles the last request of an attached panel: it needs the earlier events again.

        It asks for frames after this answer, and has set itself up by then. In between it shows the globals, so that
        the same frame again would change nothing: it is told that the thread went on, first. It sends the same request
        after each cell; to be told of a thread that goes on then would lose what is clicked at that moment.
        """
        found = await self._channel.ask_python(request)
        if self._fresh:
            self._fresh = False
            self._show()
        return found

    async def _both_source(self, request: Message) -> Any:
        found = await self._channel.ask_python(request)
        await self._console.hold()
        if self._adapter is None or found.get("success"):
            return found
        path = ((request.get("arguments") or {}).get("source") or {}).get("path") or ""
        try:
            return response(request, {"content": self._sources.text_of(path)})
        except FluidError as error:
            return refusal(request, str(error))

    # ---- runs

    def before_run(self, program: Program) -> None:
        """Let a program that is about to run be walked when a click stops in it, and run as always when none does.

        Args:
            program: the program.
        """
        if not self._channel.started:
            return
        clicked = not any(program is s for s in self._startups()) and self._clicks.stop(program)
        if self._made is not None and (self._made.closed or (self._made.program is program and not clicked)):
            self._close_made()
        if self.session is not None and self.session.program is program and not self.session.closed:
            self._place()  # a cell that ran again has other lines
        if clicked and program_state(program.desc).attached is None:
            session = current()
            if session is None or session.program is not program:
                session = self._made = Session(program)
                session.around = self._names
            session.__enter__()

    def _asker(self) -> Callable[[Session], None] | None:
        """Session hook: the prompt, or panel, that controls a paused run."""
        if self._channel.started:
            return self.wait
        return None if self._prompt is None else self._prompt()

    def wait(self, session: Session) -> None:
        """Waits until a paused run has finished, or until the panel is
        switched off. Ctrl-C pauses a running run, and ends the cell of a paused one.

        Args:
            session: the session.

        Raises:
            Stopped: the user has ended the cell; the session stands as it did.
        """
        try:
            self._wait(session)
        except KeyboardInterrupt:
            raise Stopped(
                "The run was left paused.", received=session.snapshot.text,
                hint="the session is still paused there; %fluid step, back, continue ... resume it.",
            ) from None  # fmt: skip

    def _wait(self, session: Session) -> None:
        self._follow(session)
        over = self._over = queue.SimpleQueue()

        def look(snapshot: Snapshot) -> None:
            if snapshot.state == "done" or snapshot.closed:
                over.put(None)

        session.post_between_steps(Debugger.observe, look)
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
                session.post_between_steps(Debugger.forget, look)
