"""Handler of stops: a cell whose run is paused waits for the panel, as for the prompt."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from fluidnb.debug.session import Session, Stopped, stopped_error
from fluidnb.program import hooks

#: Seconds between two looks at Ctrl-C, and for which a page may take to say that it hears.
_LOOK, _ANSWER = 0.1, 5.0

#: What is said where buttons are heard between cells only.
DEAF = (
    "This kernel hears the panel only between two cells, so a cell does not wait for it: its runs use the prompt, "
    "or raise Stopped. Then continue from here."
)


class WaitingPanel(Protocol):
    """A panel for which a cell can wait."""

    def ask_page(self) -> None:
        """Pings the page; it responds with `PanelStopHandler.heard` of the session."""

    def say_waiting(self, waits: bool) -> None:
        """Show whether a cell waits for this panel."""

    def say_deaf(self, deaf: bool) -> None:
        """Show whether the page is heard between two cells only."""


class PanelStopHandler:
    """What a session does when a run of ``exe.run`` stops while panels show it.

    Whether buttons are heard while a cell is busy depends on the kernel and on the front end, so it is not guessed: the
    page is asked, and where it does not answer, the prompt asks, or `Stopped` is raised.

    Args:
        session: the session.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._panels: list[WaitingPanel] = []
        self._heard, self._moved = threading.Event(), threading.Event()
        self._left = False

    @classmethod
    def join(cls, panel: WaitingPanel, session: Session) -> PanelStopHandler | None:
        """Let cells wait for a panel.

        Args:
            panel: the panel.
            session: its session.

        Returns:
            What lets them wait; None where the user's own ``on_stop`` says what to do.
        """
        waiting = session.on_stop
        if waiting is None:
            waiting = session.on_stop = cls(session)
        if not isinstance(waiting, PanelStopHandler):
            return None
        waiting._panels.append(panel)
        return waiting

    def leave(self, panel: WaitingPanel) -> None:
        """Wait no more for a panel; the last one takes everything back.

        Args:
            panel: the panel.
        """
        if panel in self._panels:
            self._panels.remove(panel)
        if not self._panels and self._session.on_stop is self:
            self._session.on_stop = None

    def heard(self) -> None:
        """The page of a panel answers."""
        self._heard.set()

    def moved(self) -> None:
        """Handles a new position of the session."""
        self._moved.set()

    def let_go(self) -> None:
        """Leaves the run paused and ends the waiting cell."""
        self._left = True
        self._moved.set()

    def __call__(self, session: Session) -> None:
        """Waits until the run is over; Ctrl-C pauses a running run, and ends the cell of a paused one.

        Args:
            session: the session.

        Raises:
            Stopped: the user leaves the run where it stands, or nobody can answer.
        """
        self._left = False
        if not self._is_heard():
            self._each(lambda panel: panel.say_deaf(True))
            ask = hooks.debug_prompt() if hooks.debug_prompt is not None else None
            if ask is None:
                raise stopped_error(session.snapshot)
            ask(session)
            return
        self._each(lambda panel: panel.say_deaf(False))
        self._each(lambda panel: panel.say_waiting(True))
        try:
            while not self._left and not session.closed and session.snapshot.state != "done":
                try:
                    self._moved.wait(_LOOK)
                    self._moved.clear()
                except KeyboardInterrupt:
                    if session.snapshot.state != "running":
                        self._left = True
                    session.pause()
        finally:
            self._each(lambda panel: panel.say_waiting(False))
        if session.snapshot.state != "done" and session.snapshot.error is None:
            raise Stopped("The run was left paused.", received=session.snapshot.text)

    def _is_heard(self) -> bool:
        self._heard.clear()
        self._each(lambda panel: panel.ask_page())
        return self._heard.wait(_ANSWER)

    def _each(self, act: Callable[[WaitingPanel], None]) -> None:
        for panel in list(self._panels):
            act(panel)
