"""Serves a session to editors: their connections, and how a run waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import BinaryIO

from fluidnb.dap.adapter import Adapter, Message
from fluidnb.dap.client import Client
from fluidnb.dap.sources import ScriptSources
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session, Stopped, stopped_error
from fluidnb.debug.snapshot import Snapshot
from fluidnb.errors import NotFound, OpValueError
from fluidnb.program import hooks

#: Seconds that clients have to disconnect at the end.
_DISCONNECT = 5.0
#: Seconds that a client that disconnects may take before the next one is refused.
_HANDOVER = 2.0
#: The most open connections; most of them have not sent their token yet.
_CONNECTIONS = 16


class Host:
    """Serves the current session to clients.

    While a client is connected, a run in ``exe.run`` that stops waits for it.

    Args:
        session: returns the session, or None.
        token: what clients have to send; empty for nothing.
        stays: whether a paused run waits for the next client when the last one has gone.
        interrupt: ends the script; None where only the current run is ended.
    """

    def __init__(
        self, session: Callable[[], Session | None], token: str = "", stays: bool = False,
        interrupt: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._session, self._token, self._stays, self._interrupt = session, token, stays, interrupt
        self._clients: list[Client] = []
        self._changed = threading.Condition()
        self._taken = False  # whether an editor is attached
        self._ended = self._vanished = self._over = False
        self._raised: BaseException | None = None
        self._waits = False  # whether the script waits here, where it needs no interrupt
        self._prompt = hooks.debug_prompt
        self._installed = self._on_stop  # one object: bound methods are new at each access
        hooks.debug_prompt = self._installed

    # ---- clients

    def welcome(self, reader: BinaryIO, writer: BinaryIO, hang_up: Callable[[], None]) -> Client:
        """Serve a client: requests from ``reader``, responses and events to ``writer``; ``hang_up`` disconnects."""
        client = Client(reader, writer, self._token, self._join, self._left, hang_up)
        with self._changed:
            refused = len(self._clients) >= _CONNECTIONS
            if not refused:
                self._clients.append(client)
        if refused:
            hang_up()
        else:
            client.start()
        return client

    def wait_for_client(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Wait until a client is ready: it has set its breakpoints."""
        self._wait(lambda: bool(self.ready) or enough())

    @property
    def ready(self) -> list[Adapter]:
        """The adapters of connected clients that have finished their configuration."""
        adapters = [client.adapter for client in self._clients]
        return [adapter for adapter in adapters if adapter is not None and adapter.ready]

    @property
    def continues(self) -> bool:
        """Whether a script is debugged, which continues by itself after a run."""
        return self._interrupt is not None

    def output(self, text: str, category: str) -> None:
        """Show text in the consoles of the clients; ``category`` is ``stdout`` or ``stderr``."""
        for adapter in self.ready:
            adapter.output(text, category)

    def end(self, status: int) -> None:
        """Report the exit status of the script, and give clients time to disconnect."""
        self._over = True
        for adapter in self.ready:
            adapter.end(status)
        with self._changed:
            self._changed.wait_for(lambda: not self.ready, _DISCONNECT)

    def close(self) -> None:
        """Disconnect all clients; runs that stop use the prompt of before."""
        if hooks.debug_prompt is self._installed:
            hooks.debug_prompt = self._prompt
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        for client in list(self._clients):
            client.close()

    def terminate(self) -> None:
        """End the current run, and the script."""
        session = self._session()
        with self._changed:
            self._ended = self._interrupt is not None or (session is not None and session.waited_for)
            self._changed.notify_all()
            if self._interrupt is not None and not self._waits:
                self._interrupt()
        if session is not None and not session.closed:
            session.pause()

    def raise_error(self, error: BaseException) -> None:
        """Let the run that is paused at an operator that failed raise its error."""
        with self._changed:
            self._raised = error
            self._changed.notify_all()

    def client_ready(self) -> None:
        """Notice that a client is ready, or gone."""
        with self._changed:
            self._changed.notify_all()

    def _join(self, emit: Callable[[Message], None]) -> Adapter:
        session = self._session()
        if session is None or session.closed:
            raise NotFound("There is no debug session to attach to.", hint="begin one, then attach again.")
        with self._changed:
            if not self._changed.wait_for(lambda: not self._taken, _HANDOVER):
                raise OpValueError("Another editor is attached to this session.", hint="disconnect it, then try again.")
            self._taken = True
        return Adapter(emit, session, ScriptSources(lambda: session.program), self)

    def _left(self, client: Client, disconnected: bool) -> None:
        """End a script that only served a client that is gone; continue its run if it disconnected properly."""
        session = self._session()
        with self._changed:
            self._clients.remove(client)
            self._taken = self._taken and client.adapter is None
            alone = not (self.ready or self._ended or self._over)
            ends = alone and self._interrupt is not None and not self._stays
            continues = alone and disconnected and self._stays and session is not None and session.waited_for
            interrupts = ends and not self._waits
            self._ended, self._vanished = self._ended or ends, not disconnected
            self._changed.notify_all()
        if session is None or session.closed:
            return
        if ends:
            session.pause()
        if interrupts and self._interrupt is not None:
            self._interrupt()
        if continues:
            session.post(Debugger.continue_)

    # ---- a paused run

    def _on_stop(self) -> Callable[[Session], None] | None:
        if self.ready or self._stays:
            return self.wait_for_clients
        return None if self._prompt is None else self._prompt()

    def wait_for_clients(self, session: Session) -> None:
        """Wait until clients have continued a paused run to its end; a failed run raises then."""
        over = False

        def observe(snapshot: Snapshot) -> None:
            nonlocal over
            with self._changed:
                over = over or snapshot.state == "done" or snapshot.closed
                self._changed.notify_all()

        def is_over() -> bool:
            failed = session.snapshot.error
            return over or (failed is not None and failed is self._raised) or not (self._stays or self.ready)

        if session.snapshot.error is not None and not any(adapter.stops_at_errors for adapter in self.ready):
            return
        session.do_between_steps(Debugger.observe, observe)
        try:
            self._wait(is_over)
        finally:
            if not session.closed:
                session.do_between_steps(Debugger.forget, observe)
        if not over and self._vanished and not self.ready:
            raise stopped_error(session.snapshot)

    def _wait(self, over: Callable[[], bool]) -> None:
        with self._changed:
            self._waits = True
            try:
                self._changed.wait_for(lambda: self._ended or over())
            finally:
                self._waits = False
            if not self._ended:
                return
            self._ended = self._interrupt is not None
        if self._ended:
            raise KeyboardInterrupt
        raise Stopped("A client of the debugger has ended the run.")
