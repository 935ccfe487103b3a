"""One client on one connection: it shows its token, then an adapter answers it."""

from __future__ import annotations

import hmac
import queue
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from fluidnb.dap.adapter import Adapter, Message
from fluidnb.dap.capabilities import CAPABILITIES
from fluidnb.dap.wire import packed, read_message
from fluidnb.errors import FluidError

#: Seconds that a connection has to show its token.
_PATIENCE = 10.0

#: Messages that may wait for a client that does not read; one that lets more wait is sent away.
_WAITING = 10_000

#: What has not shown its token may ask for these; nothing in their answers comes from the session.
_BEFORE = ("initialize", "attach", "launch", "disconnect")


class Client:
    """Reads requests in one thread and writes responses and events in another, so that nobody waits for a slow reader.

    Args:
        reader: where requests come from.
        writer: where responses and events go.
        token: what it has to show; empty for nothing.
        join: makes the adapter, once the token was shown; called with what takes events.
        left: called when it is gone: with the client, and whether it said that it goes.
        hang_up: closes the connection.
    """

    def __init__(
        self,
        reader: BinaryIO,
        writer: BinaryIO,
        token: str,
        join: Callable[[Callable[[Message], None]], Adapter],
        left: Callable[[Client, bool], None],
        hang_up: Callable[[], None],
    ) -> None:
        self._reader, self._writer, self._token = reader, writer, token
        self._join, self._left, self._hang_up = join, left, hang_up
        self._out: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self.adapter: Adapter | None = None
        self._hello: Message | None = None
        self._too_late = threading.Timer(_PATIENCE, hang_up)
        self._too_late.daemon = True
        self._writing = threading.Thread(target=self._write, name="fluid-dap-write", daemon=True)
        self._reading = threading.Thread(target=self._read, name="fluid-dap-read", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        if self._token:
            self._too_late.start()
        self._writing.start()
        self._reading.start()

    def close(self, patience: float = 2.0) -> None:
        """Let go of it, after what waits for it was written.

        Args:
            patience: seconds that it has to read what waits.
        """
        self._too_late.cancel()
        self._put(None)
        self._writing.join(patience)
        self._hang_up()

    # ---- reading

    def _read(self) -> None:
        said = False
        try:
            while not said:
                message = read_message(self._reader)
                if message is None:
                    break
                said = not self._handle(message)
        except FluidError as error:
            self._send(_refusal({}, str(error)))
        except (OSError, ValueError):  # the connection is gone
            pass
        adapter = self.adapter
        if adapter is not None:
            adapter.close()
        self._left(self, said and adapter is not None)
        self.close()

    def _handle(self, message: Message) -> bool:
        """Answer a message; whether to go on."""
        leaves = message.get("command") == "disconnect"
        if self.adapter is not None:
            self.adapter.answer(message, self._send)
            return not leaves
        command, arguments = message.get("command"), message.get("arguments")
        shown = arguments.get("token") if isinstance(arguments, dict) else None
        if message.get("type") != "request" or command not in _BEFORE:
            self._send(_refusal(message, "The token comes first: as token in attach, launch or initialize."))
            return False
        if leaves:
            self._send(_answer(message, {}))
            return False
        if command == "initialize" and shown is None and self._token:
            self._hello = message
            self._send(_answer(message, CAPABILITIES))
            return True
        if self._token and not (isinstance(shown, str) and hmac.compare_digest(shown.encode(), self._token.encode())):
            wrong = "The token is wrong." if shown is not None else "A token is needed."
            self._send(_refusal(message, f"{wrong} What started the debugger has printed it."))
            return False
        try:
            self.adapter = self._join(self._send)
        except FluidError as error:
            self._send(_refusal(message, str(error)))
            return False
        self._too_late.cancel()
        if self._hello is not None:
            self.adapter.answer(self._hello, lambda response: None)  # it was answered before the token was shown
        self.adapter.answer(message, self._send)
        return True

    # ---- writing

    def _send(self, message: Message) -> None:
        self._put(packed(message))

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
