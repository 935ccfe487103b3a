"""One client on one connection: it sends its token, then an adapter answers it."""

from __future__ import annotations

import hmac
import queue
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from fluidnb.dap.adapter import Adapter, Message
from fluidnb.dap.requests import CAPABILITIES
from fluidnb.dap.wire import encoded, read_message
from fluidnb.errors import FluidError

#: Seconds that a connection has to send its token.
_PATIENCE = 10.0
#: Messages that may wait for a slow client; one that lets more wait is disconnected.
_WAITING = 10_000
#: Requests allowed before the token; nothing in their answers comes from the session.
_BEFORE = ("initialize", "attach", "launch", "disconnect")


class Client:
    """Reads requests in one thread and writes messages in another, so that a slow client causes no delay.

    Args:
        token: what it has to send; empty for nothing.
        join: creates the adapter after the token was sent; called with a function that sends events.
        left: called when it is gone: with the client, and whether it has disconnected properly.
    """

    def __init__(
        self, reader: BinaryIO, writer: BinaryIO, token: str, join: Callable[[Callable[[Message], None]], Adapter],
        left: Callable[[Client, bool], None], hang_up: Callable[[], None],
    ) -> None:  # fmt: skip
        self._reader, self._writer, self._token = reader, writer, token
        self._join, self._left, self._hang_up = join, left, hang_up
        self._out: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self.adapter: Adapter | None = None
        self._hello: Message | None = None
        self._timeout = threading.Timer(_PATIENCE, hang_up)
        self._timeout.daemon = True
        self._writing = threading.Thread(target=self._write, name="fluid-dap-write", daemon=True)
        self._reading = threading.Thread(target=self._read, name="fluid-dap-read", daemon=True)

    def start(self) -> None:
        """Start both threads."""
        if self._token:
            self._timeout.start()
        self._writing.start()
        self._reading.start()

    def close(self, patience: float = 2.0) -> None:
        """Disconnect it; it has ``patience`` seconds to read what was sent."""
        self._timeout.cancel()
        self._put(None)
        self._writing.join(patience)
        self._hang_up()

    # ---- reading

    def _read(self) -> None:
        disconnected = False
        try:
            while not disconnected:
                message = read_message(self._reader)
                if message is None:
                    break
                disconnected = not self._handle(message)
        except FluidError as error:
            self._send(_refusal({}, str(error)))
        except (OSError, ValueError):  # the connection is gone
            pass
        adapter = self.adapter
        if adapter is not None:
            adapter.close()
        self._left(self, disconnected and adapter is not None)
        self.close()

    def _handle(self, message: Message) -> bool:
        """Answer a message; False if it was the last one."""
        leaves = message.get("command") == "disconnect"
        if self.adapter is not None:
            self.adapter.answer(message, self._send)
            return not leaves
        command, arguments = message.get("command"), message.get("arguments")
        token = arguments.get("token") if isinstance(arguments, dict) else None
        if message.get("type") != "request" or command not in _BEFORE:
            self._send(_refusal(message, "The token comes first: as token in attach, launch or initialize."))
            return False
        if leaves:
            self._send(_answer(message, {}))
            return False
        if command == "initialize" and token is None and self._token:
            self._hello = message
            self._send(_answer(message, CAPABILITIES))
            return True
        if self._token and not (isinstance(token, str) and hmac.compare_digest(token.encode(), self._token.encode())):
            wrong = "The token is wrong." if token is not None else "A token is needed."
            self._send(_refusal(message, f"{wrong} The command that started the debugger has printed it."))
            return False
        try:
            self.adapter = self._join(self._send)
        except FluidError as error:
            self._send(_refusal(message, str(error)))
            return False
        self._timeout.cancel()
        if self._hello is not None:
            self.adapter.answer(self._hello, lambda response: None)  # it was answered before the token was sent
        self.adapter.answer(message, self._send)
        return True

    # ---- writing

    def _send(self, message: Message) -> None:
        self._put(encoded(message))

    def _put(self, data: bytes | None) -> None:
        try:
            self._out.put_nowait(data)
        except queue.Full:
            self._hang_up()

    def _write(self) -> None:
        try:
            while (data := self._out.get()) is not None:
                self._writer.write(data)
                self._writer.flush()
        except (OSError, ValueError):  # the connection is gone; the reader finds out too
            pass


def _answer(request: Message, body: dict[str, Any]) -> Message:
    return {
        "type": "response", "seq": 0, "request_seq": _seq(request), "command": str(request.get("command")),
        "success": True, "body": body,
    }  # fmt: skip


def _refusal(request: Message, text: str) -> Message:
    error = {"id": 2, "format": text.replace("{", "(").replace("}", ")"), "showUser": True}
    return {**_answer(request, {"error": error}), "success": False, "message": text}


def _seq(request: Message) -> int:
    seq = request.get("seq")
    return seq if isinstance(seq, int) else 0
