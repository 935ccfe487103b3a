"""Handler of stops: a cell whose run is paused waits for the panel, as for the prompt."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from fluidnb.debug.session import Session, Stopped, stopped_error
from fluidnb.program import hooks

#: Seconds between two checks for Ctrl-C, and within which a page must respond.
_CHECK, _ANSWER = 0.1, 5.0

#: The note where the kernel handles buttons between cells only.
UNANSWERED = (
    "This kernel handles the panel only between two cells, so a cell does not wait for it: its runs use the prompt, "
    "or raise Stopped. Then continue from here."
)


class WaitingPanel(Protocol):
    """A panel for which a cell can wait."""

    def ask_page(self) -> None:
        """Pings the page; it responds with `PanelStopHandler.answered` of the session."""

    def say_waiting(self, waits: bool) -> None:
        """Show whether a cell waits for this panel."""

    def say_unanswered(self, unanswered: bool) -> None:
        """Show whether requests of the page are handled between two cells only."""


class PanelStopHandler:
    """Handles a stop of a run of ``exe.run`` while panels show its session.

    It depends on the kernel and on the front end whether requests are handled while a cell is busy; so the page is
    pinged, and where it does not respond, the prompt is used, or `Stopped` is raised.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._panels: list[WaitingPanel] = []
        self._answered, self._moved = threading.Event(), threading.Event()
        self._left = False

    @classmethod
    def join(cls, panel: WaitingPanel, session: Session) -> PanelStopHandler | None:
        """Let cells wait for a panel; None where the user's own ``on_stop`` handles stops."""
        waiting = session.on_stop
        if waiting is None:
            waiting = session.on_stop = cls(session)
        if not isinstance(waiting, PanelStopHandler):
            return None
        waiting._panels.append(panel)
        return waiting

    def leave(self, panel: WaitingPanel) -> None:
        """Do not wait for a panel any more; the last one restores ``on_stop``."""
        if panel in self._panels:
            self._panels.remove(panel)
        if not self._panels and self._session.on_stop is self:
            self._session.on_stop = None

    def answered(self) -> None:
        """The page of a panel responds."""
        self._answered.set()

    def moved(self) -> None:
        """Updates the panel after a move."""
        self._moved.set()

    def end_wait(self) -> None:
        """End the waiting cell, and leave its run paused."""
        self._left = True
        self._moved.set()

    def __call__(self, session: Session) -> None:
        """Wait until the run has finished; Ctrl-C pauses a running run, and ends the cell of a paused one."""
        self._left = False
        self._answered.clear()
        self._each(lambda panel: panel.ask_page())
        # Without threads the page cannot respond before the cell has ended.
        if session.inline or not self._answered.wait(_ANSWER):
            self._each(lambda panel: panel.say_unanswered(True))
            prompt = hooks.debug_prompt() if hooks.debug_prompt is not None else None
            if prompt is None:
                raise stopped_error(session.snapshot)
            prompt(session)
            return
        self._each(lambda panel: panel.say_unanswered(False))
        self._each(lambda panel: panel.say_waiting(True))
        try:
            while not self._left and not session.closed and session.snapshot.state != "done":
                try:
                    self._moved.wait(_CHECK)
                    self._moved.clear()
                except KeyboardInterrupt:
                    if session.snapshot.state != "running":
                        self._left = True
                    session.pause()
        finally:
            self._each(lambda panel: panel.say_waiting(False))
        if session.snapshot.state != "done" and session.snapshot.error is None:
            raise Stopped("The run was left paused.", received=session.snapshot.text)

    def _each(self, act: Callable[[WaitingPanel], None]) -> None:
        for panel in list(self._panels):
            act(panel)
