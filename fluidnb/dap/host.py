"""What serves a session to editors: who is there, what they are told, and how a run waits for them."""

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

#: Seconds that clients have to leave when all is over.
_FAREWELL = 5.0

#: Seconds that a client that has just left has to be gone, before the next one is refused.
_HANDOVER = 2.0

#: Connections that may be open at a time; most of them have not shown their token yet.
_MOST = 16


class Host:
    """Serves the session that is there when a client comes.

    While a client is there, a run in ``exe.run`` that stops waits for the clients.

    Args:
        session: gives the session; None where there is none.
        token: what clients have to show; empty for nothing.
        stays: whether a run that stands still waits for a client when the last one has gone.
        interrupt: ends what runs the program; None where only the run under way is ended.
    """

    def __init__(
        self,
        session: Callable[[], Session | None],
        token: str = "",
        stays: bool = False,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        self._session, self._token, self._stays, self._interrupt = session, token, stays, interrupt
        self._clients: list[Client] = []
        self._changed = threading.Condition()
        self._taken = False  # whether an editor has joined
        self._ended = self._vanished = self._over = False
        self._raised: BaseException | None = None
        self._waits = False  # whether what runs the program waits here, and looks at what has changed by itself
        self._prompt = hooks.debug_prompt
        self._asker_in_place = self._asker  # one object, so that it is known again
        hooks.debug_prompt = self._asker_in_place

    # ---- clients

    def welcome(self, reader: BinaryIO, writer: BinaryIO, hang_up: Callable[[], None]) -> Client:
        """Talk to a client.

        Args:
            reader: where its requests come from.
            writer: where responses and events go.
            hang_up: closes the connection.

        Returns:
            The client.
        """
        client = Client(reader, writer, self._token, self._join, self._left, hang_up)
        with self._changed:
            refused = len(self._clients) >= _MOST
            if not refused:
                self._clients.append(client)
        if refused:
            hang_up()
        else:
            client.start()
        return client

    def wait_for_client(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Wait until a client is ready: it has set its breakpoints.

        Args:
            enough: whether to wait no longer; checked again after `changed`.

        Raises:
            KeyboardInterrupt: Ctrl-C, or a client ended it all.
        """
        self._wait(lambda: bool(self.ready) or enough())

    @property
    def ready(self) -> list[Adapter]:
        """The adapters of clients that are there and have said all that they want."""
        adapters = [client.adapter for client in self._clients]
        return [adapter for adapter in adapters if adapter is not None and adapter.ready]

    @property
    def continues(self) -> bool:
        """Whether it is a script that goes on by itself when a run is over."""
        return self._interrupt is not None

    def output(self, text: str, category: str) -> None:
        """Show text in the consoles of the clients.

        Args:
            text: the text.
            category: ``stdout`` or ``stderr``.
        """
        for adapter in self.ready:
            adapter.output(text, category)

    def end(self, status: int) -> None:
        """Tell clients that what ran the program has ended, and give them time to say that they leave.

        Args:
            status: its exit status.
        """
        self._over = True
        for adapter in self.ready:
            adapter.end(status)
        with self._changed:
            self._changed.wait_for(lambda: not self.ready, _FAREWELL)

    def close(self) -> None:
        """Send all clients away; runs that stop ask whom they asked before."""
        if hooks.debug_prompt is self._asker_in_place:
            hooks.debug_prompt = self._prompt
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        for client in list(self._clients):
            client.close()

    def terminate(self) -> None:
        """End the run that is under way, and what asked for it."""
        session = self._session()
        with self._changed:
            self._ended = self._interrupt is not None or (session is not None and session.waited_for)
            self._changed.notify_all()
            if self._interrupt is not None and not self._waits:
                self._interrupt()
        if session is not None and not session.closed:
            session.pause()

    def raise_error(self, error: BaseException) -> None:
        """Let the run that stands at an operator that failed raise the error.

        Args:
            error: the error.
        """
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
            raise NotFound("There is no debug session to join.", hint="begin one, then attach again.")
        with self._changed:
            if not self._changed.wait_for(lambda: not self._taken, _HANDOVER):
                raise OpValueError("Another editor has joined this session.", hint="disconnect it, then attach again.")
            self._taken = True
        return Adapter(emit, session, ScriptSources(lambda: session.program), self)

    def _left(self, client: Client, said: bool) -> None:
        """A client is gone; what it was started for alone ends, a run that waited for it goes on where it said so."""
        session = self._session()
        with self._changed:
            self._clients.remove(client)
            self._taken = self._taken and client.adapter is None
            alone = not (self.ready or self._ended or self._over)
            ends = alone and self._interrupt is not None and not self._stays
            continues = alone and said and self._stays and session is not None and session.waited_for
            interrupts = ends and not self._waits
            self._ended, self._vanished = self._ended or ends, not said
            self._changed.notify_all()
        if session is None or session.closed:
            return
        if ends:
            session.pause()
        if interrupts and self._interrupt is not None:
            self._interrupt()
        if continues:
            session.post(Debugger.continue_)

    # ---- a run that stands still

    def _asker(self) -> Callable[[Session], None] | None:
        if self.ready or self._stays:
            return self.hold
        return None if self._prompt is None else self._prompt()

    def hold(self, session: Session) -> None:
        """Wait until clients have brought a run to its end.

        One that failed is over when a client lets it go on: then it raises.

        Args:
            session: the session, whose run stands still.

        Raises:
            Stopped: a client has ended the run, or the last one has vanished.
            KeyboardInterrupt: Ctrl-C, or a client has ended what runs the program.
        """
        over = False

        def look(snapshot: Snapshot) -> None:
            nonlocal over
            with self._changed:
                over = over or snapshot.state == "done" or snapshot.closed
                self._changed.notify_all()

        def is_over() -> bool:
            failed = session.snapshot.error
            return over or (failed is not None and failed is self._raised) or not (self._stays or self.ready)

        if session.snapshot.error is not None and not any(adapter.stops_at_errors for adapter in self.ready):
            return
        session.do_between_steps(Debugger.observe, look)
        try:
            self._wait(is_over)
        finally:
            if not session.closed:
                session.do_between_steps(Debugger.forget, look)
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
