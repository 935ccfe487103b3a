"""The events that JupyterLab's debugger panel is told, and when: over a channel without a kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.debug.session import Session
from fluidnb_magics.jupyter.debugger import DebuggerProxy
from fluidnb_magics.jupyter.kernel_private import Message


class Channel:
    """A debug channel whose Python debugger agrees to everything and never stops.

    Attributes:
        told: the events, in order.
    """

    started, python_is_paused = True, False

    def __init__(self) -> None:
        self.told: list[Message] = []
        self.breakpoints: dict[str, Any] = {}

    def attach(self, respond: Any, on_event: Any) -> None:
        """Nothing to attach to."""

    def detach(self) -> None:
        """Nothing to detach from."""

    async def request_python(self, request: Message) -> Message:
        """An answer with all that any request wants."""
        body: dict[str, Any] = {"breakpoints": [], "stoppedThreads": [], "threads": [], "modules": [], "variables": []}
        return {"type": "response", "command": request["command"], "success": True, "body": body}

    async def meanwhile(self, waiting: Any) -> Any:
        """Wait."""
        return await waiting

    def send(self, event: Message) -> None:
        """Keep it."""
        self.told.append(event)


@pytest.fixture
def panel() -> Iterator[tuple[DebuggerProxy, Channel]]:
    """The debugger behind a panel that is on, and its channel."""
    channel = Channel()
    debugger = DebuggerProxy(channel, {}, lambda value: ({}, {}), lambda: [])  # type: ignore[arg-type]
    debugger.install()
    yield debugger, channel
    debugger.remove()


def ask(debugger: DebuggerProxy, *commands: str, quiet: float = 0.0) -> list[Any]:
    """Send requests one after another, and listen for a while."""

    async def each() -> list[Any]:
        found = [
            await debugger.respond({"type": "request", "seq": 0, "command": command, "arguments": {}})
            for command in commands
        ]
        await asyncio.sleep(quiet)
        return found

    return asyncio.run(each())


def send(debugger: DebuggerProxy, command: str, **arguments: Any) -> Any:
    """Send one request."""
    request = {"type": "request", "seq": 0, "command": command, "arguments": arguments}
    return asyncio.run(debugger.respond(request))


def names(channel: Channel) -> list[str]:
    """The events that say where the thread stands."""
    return [event["event"] for event in channel.told if event["event"] in ("stopped", "continued")]


def paused() -> Session:
    """A session that stands at the first operator of a program."""
    fluid.layers.relu(fluid.layers.data("x", shape=[2]))
    session = Session(fluid.default_main_program())
    assert session.begin({"x": np.ones((1, 2), "float32")}).state == "paused"
    return session


def test_a_panel_is_told_where_the_program_stands_after_its_last_request(
    panel: tuple[DebuggerProxy, Channel],
) -> None:
    debugger, channel = panel
    session = paused()
    try:
        info = ask(debugger, "debugInfo", "initialize", "attach", "inspectVariables")[0]
        before = len(names(channel))
        ask(debugger, "modules")
        assert names(channel)[before:] == ["continued", "stopped"]
        assert info["body"]["stoppedThreads"]
    finally:
        session.close()


def test_a_panel_that_is_on_is_told_once_that_the_program_stands(panel: tuple[DebuggerProxy, Channel]) -> None:
    debugger, channel = panel
    ask(debugger, "debugInfo", "initialize", "attach", "inspectVariables", "modules")
    session = paused()
    try:
        ask(debugger, "debugInfo")
        before = len(names(channel))
        ask(debugger, "debugInfo", quiet=0.6)  # it goes with every click in a gutter
        assert names(channel)[before:] == []
    finally:
        session.close()


def test_a_cell_that_ran_does_not_make_the_panel_forget_the_thread(panel: tuple[DebuggerProxy, Channel]) -> None:
    debugger, channel = panel
    ask(debugger, "debugInfo", "initialize", "attach", "inspectVariables", "modules")
    session = paused()
    try:
        before = len(names(channel))
        ask(debugger, "modules")  # JupyterLab sends it after each cell
        assert names(channel)[before:] == []
    finally:
        session.close()


def test_a_request_without_a_thread_or_frame_of_ours_means_the_program_that_is_paused(
    panel: tuple[DebuggerProxy, Channel],
) -> None:
    debugger, channel = panel
    session = paused()
    try:
        assert send(debugger, "evaluate", expression="x + 1")["body"]["result"].startswith("float32[1, 2]")
        assert "x" in send(debugger, "evaluate", expression="%fluid edit x = 5")["body"]["result"]
        assert session["x"].tolist() == [[5.0, 5.0]]
        assert "relu" in send(debugger, "stackTrace", threadId=1)["body"]["stackFrames"][0]["name"]
        send(debugger, "next", threadId=1)
        assert session.inspect(lambda debugger: debugger.snapshot.state) == "done"
        assert send(debugger, "stackTrace", threadId=1)["body"]["stackFrames"] == []
        assert "relu" in send(debugger, "evaluate", expression="%fluid back")["body"]["result"]
        channel.python_is_paused = True  # then they mean Python
        assert "result" not in send(debugger, "evaluate", expression="x + 1")["body"]
        assert "relu" in send(debugger, "evaluate", expression="%fluid where")["body"]["result"]
    finally:
        session.close()
