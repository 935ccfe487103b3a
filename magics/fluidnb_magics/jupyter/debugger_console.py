"""What is typed into JupyterLab's debug console: the console keeps the focus, and the panel its variables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fluidnb.debug.session import Session

#: Waits for something while other requests are answered.
Meanwhile = Callable[[Awaitable[Any]], Awaitable[Any]]

#: Seconds that answers are held back at most: a front end that is not JupyterLab's panel does not ask as it does.
_MOST = 3.0


class Console:
    """Orders the responses to requests of the panel during a console evaluation.

    The panel focuses the cell of each new frame, when it gets the frame's source: the next keys would be shortcuts of
    the notebook, where ``x`` cuts a cell. And it forgets the variables when it gets the answer to what was typed. Then
    it asks for the frames once more, and focuses the console. So sources and variables are held back until that last
    request, and sent right before its answer.

    Args:
        meanwhile: waits for something while other requests are answered.
    """

    def __init__(self, meanwhile: Meanwhile) -> None:
        self._meanwhile = meanwhile
        self._busy = self._answered = False
        self._held = 0
        self._asked = (0, 0)  # the run and the step whose variables the panel asked for last

    async def evaluated(self, session: Session, work: Awaitable[str], show: Callable[[], None]) -> str:
        """Waits for an evaluation, and for the requests of the panel that follow it.

        Args:
            session: the session.
            work: does what was typed, and gives the answer.
            show: makes the panel ask again where the program has not moved.

        Returns:
            The answer.
        """
        before, self._asked = _step_of(session), (-1, -1)
        self._busy, self._answered = True, False
        try:
            text: str = await self._meanwhile(work)
            if session.snapshot.state == "paused":
                if _step_of(session) == before:
                    show()
                await self._meanwhile(_until(lambda: self._asked == _step_of(session)))
        finally:
            self._answered = self._asked == _step_of(session)
            self._busy = self._answered
        return text

    def asked(self, session: Session) -> None:
        """Handles a request for variables.

        Args:
            session: the session.
        """
        self._asked = _step_of(session)

    async def hold(self) -> None:
        """Delays a response until the panel requests frames; no delay without an evaluation."""
        if self._busy:
            self._held += 1
            await self._meanwhile(_until(lambda: not self._busy))
            self._busy = False
            self._held -= 1

    async def release(self) -> None:
        """Let the answers be sent that were held back."""
        if self._answered:
            self._busy = self._answered = False
            await self._meanwhile(_until(lambda: not self._held))


async def _until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + _MOST
    while not there() and time.monotonic() < end:
        await asyncio.sleep(0.005)


def _step_of(session: Session) -> tuple[int, int]:
    """The run and the step where a session is paused."""
    return session.snapshot.run, session.snapshot.at
