"""A debug session with one client in this process, whose messages are all checked with the protocol's schema."""

from __future__ import annotations

import queue
from typing import Any

from fluidnb.dap import Adapter, Sources
from fluidnb.debug.session import Session
from tests.dap.schema import Message, problems

#: Seconds after which something that must come has not come.
PATIENCE = 60


class Direct:
    """Asks an adapter without any transport.

    Args:
        session: the session.
        sources: where operators are shown.
        hello: the arguments of ``initialize``.
    """

    def __init__(self, session: Session, sources: Sources, **hello: Any) -> None:
        self.events: queue.Queue[Message] = queue.Queue()
        self.adapter = Adapter(self._hear, session, sources)
        self._seq = 0
        self.ask("initialize", adapterID="fluidnb", **hello)
        self.ask("attach")

    def _hear(self, event: Message) -> None:
        self.events.put(event)

    def try_(self, command: str, **arguments: Any) -> Message:
        """The response to a request, also where it fails."""
        self._seq += 1
        request = {"seq": self._seq, "type": "request", "command": command, "arguments": arguments}
        assert problems(request) == []
        response = self.adapter.handle(request)
        assert problems(response) == [] and response["request_seq"] == self._seq
        return response

    def ask(self, command: str, **arguments: Any) -> Message:
        """The response to a request, which must succeed."""
        response = self.try_(command, **arguments)
        assert response["success"], response
        return response.get("body", {})

    def refused(self, command: str, **arguments: Any) -> str:
        """The error of a request, which must fail."""
        response = self.try_(command, **arguments)
        assert not response["success"]
        return response["message"]

    def event(self, name: str) -> Message:
        """The next event of a name; those before it are passed."""
        while True:
            event = self.events.get(timeout=PATIENCE)
            assert problems(event) == []
            if event["event"] == name:
                return event.get("body", {})

    def start(self) -> Message:
        """Send ``configurationDone`` and give the first ``stopped`` event."""
        self.ask("configurationDone")
        return self.event("stopped")

    def move(self, command: str, **arguments: Any) -> Message:
        """Send a request that moves and give the ``stopped`` event."""
        self.ask(command, threadId=self.thread, **arguments)
        return self.event("stopped")

    @property
    def thread(self) -> int:
        """The program's thread."""
        return self.ask("threads")["threads"][0]["id"]

    def frames(self) -> list[Message]:
        """The frames, innermost first."""
        return self.ask("stackTrace", threadId=self.thread)["stackFrames"]

    def scope(self, title: str) -> list[Message]:
        """The variables under a heading of the innermost frame."""
        scopes = self.ask("scopes", frameId=self.frames()[0]["id"])["scopes"]
        found = next(row for row in scopes if row["name"] == title)
        return self.ask("variables", variablesReference=found["variablesReference"])["variables"]

    def quiet(self) -> list[str]:
        """Names of the events that no call of `event` has taken."""
        names = []
        while not self.events.empty():
            names.append(self.events.get()["event"])
        return names
