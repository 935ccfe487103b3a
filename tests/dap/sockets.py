"""A client on a socket, whose messages are all checked with the protocol's schema."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from fluidnb.dap.server import LOOPBACK
from fluidnb.dap.wire import encoded, read_message
from tests.dap.client import PATIENCE
from tests.dap.schema import Message, problems

TOKEN = "right"

#: All that a test has opened; it closes them.
OPENED: list[Wire] = []


class Wire:
    """A client on a socket, that reads as it is told to."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((LOOPBACK, port), timeout=PATIENCE)
        self.stream = self.socket.makefile("rb")
        self.events: list[Message] = []
        self._seq = 0
        OPENED.append(self)

    def send(self, command: str, **arguments: Any) -> int:
        """Ask for something."""
        self._seq += 1
        message = {"seq": self._seq, "type": "request", "command": command, "arguments": arguments}
        self.socket.sendall(encoded(message))
        return self._seq

    def read(self) -> Message | None:
        """The next message."""
        message = read_message(self.stream)
        assert message is None or problems(message) == []
        return message

    def ask(self, command: str, **arguments: Any) -> Message:
        """The response to a request; events before it are kept."""
        seq = self.send(command, **arguments)
        while (message := self.read()) is not None:
            if message["type"] == "response" and message["request_seq"] == seq:
                return message
            self.events.append(message)
        raise AssertionError("the connection is gone")

    def event(self, name: str) -> Message:
        """The next event of a name, those that were kept first."""
        while True:
            message = self.events.pop(0) if self.events else self.read()
            assert message is not None, f"no {name} came"
            if message.get("event") == name:
                return message.get("body", {})

    def begin(self, token: str = TOKEN, **arguments: Any) -> Wire:
        """Show the token, and be ready."""
        assert self.ask("initialize", adapterID="fluidnb")["success"]
        assert self.ask("attach", token=token, **arguments)["success"]
        self.event("initialized")
        assert self.ask("configurationDone")["success"]
        return self

    def rest(self) -> list[Message]:
        """All that comes until the connection ends."""
        return list(iter(self.read, None))

    def close(self) -> None:
        """Vanish."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.stream.close()
        self.socket.close()
