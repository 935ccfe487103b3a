"""The adapter on a loopback socket, for editors on the same machine that know the token."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
from typing import Any

from fluidnb.dap.host import Host
from fluidnb.errors import OpValueError
from fluidnb.files.atomic_write import atomic_write
from fluidnb.files.cache_folder import cache_folder

LOOPBACK = "127.0.0.1"


class Server:
    """Listens on a loopback port until it is closed; serves one client at a time that sends the token.

    The token is in a file that only its owner can read, never in the output of a notebook or a log.
    """

    def __init__(self, host: Host, token: str, port: int = 0) -> None:
        self.host = host
        try:
            self._listener = socket.create_server((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            host.close()
            raise OpValueError(
                f"Nothing can listen on port {port}.", expected="a free port", received=str(error),
                hint="port 0 takes any that is free.",
            ) from None  # fmt: skip
        self.port: int = self._listener.getsockname()[1]
        self.token_file = cache_folder("serve") / f"{self.port}.token"
        with atomic_write(self.token_file, text=True) as file:
            if hasattr(os, "fchmod"):  # elsewhere the folder of the user's profile protects it
                os.fchmod(file.fileno(), 0o600)
            file.write(token)
        self._thread = threading.Thread(target=self._accept, name="fluid-dap-accept", daemon=True)
        self._thread.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect all clients and release the port."""
        self.token_file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes up the thread that waits for clients
        self._listener.close()
        self._thread.join()
        self.host.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._listener.fileno() < 0

    def configuration(self, name: str = "Fluid") -> dict[str, Any]:
        """The entry for an editor's ``launch.json``; ``name`` is what the editor shows."""
        return {
            "type": "fluidnb", "request": "attach", "name": name, "host": LOOPBACK, "port": self.port,
            "tokenFile": str(self.token_file),
        }  # fmt: skip

    def text(self, name: str = "Fluid") -> str:
        """The address, the file of the token, and a ``launch.json``, as text."""
        launch = {"version": "0.2.0", "configurations": [self.configuration(name)]}
        rows = [f"debug adapter at {LOOPBACK}:{self.port}, token in {self.token_file}", "launch.json of an editor:"]
        return "\n".join(rows + ["  " + row for row in json.dumps(launch, indent=2).splitlines()])

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            reader, writer = connection.makefile("rb"), connection.makefile("wb")

            def hang_up(connection: socket.socket = connection, reader: Any = reader, writer: Any = writer) -> None:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)  # ends reads and writes in other threads
                for end in (reader, writer, connection):
                    with contextlib.suppress(OSError, ValueError):
                        end.close()

            self.host.welcome(reader, writer, hang_up)


def new_token() -> str:
    """A random token."""
    return secrets.token_urlsafe(24)
