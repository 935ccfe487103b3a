"""Expressions typed into JupyterLab's debug console: it keeps the focus, and the panel its variables."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fluidnb.debug.session import Session

#: Waits for something while other requests are answered.
Meanwhile = Callable[[Awaitable[Any]], Awaitable[Any]]
_MOST = 3.0  # seconds that responses are delayed: other front ends may not send the expected request


class Console:
    """Orders the responses to requests of the panel during a console evaluation.

    The panel focuses the cell of each new frame, when it gets the frame's source: the next keys would be shortcuts of
    the notebook, where ``x`` cuts a cell. And it drops the variables when it gets the response to the evaluation. Then
    it requests the frames once more, and focuses the console. So sources and variables are delayed until that last
    request, and sent right before its response.
    """

    def __init__(self, meanwhile: Meanwhile) -> None:
        self._meanwhile = meanwhile
        self._busy = self._answered = False
        self._delayed = 0
        self._requested = (0, 0)  # the run and the step whose variables the panel requested last

    async def evaluated(self, session: Session, work: Awaitable[str], show: Callable[[], None]) -> str:
        """Wait for an evaluation, and for the requests of the panel that follow it."""
        before, self._requested = _step_of(session), (-1, -1)
        self._busy, self._answered = True, False
        try:
            text: str = await self._meanwhile(work)
            if session.snapshot.state == "paused":
                if _step_of(session) == before:
                    show()
                await self._meanwhile(_until(lambda: self._requested == _step_of(session)))
        finally:
            self._answered = self._requested == _step_of(session)
            self._busy = self._answered
        return text

    def requested(self, session: Session) -> None:
        """Notes a move that the console requested."""
        self._requested = _step_of(session)

    async def delay(self) -> None:
        """Delay a response until the panel requests frames; no delay without an evaluation."""
        if self._busy:
            self._delayed += 1
            await self._meanwhile(_until(lambda: not self._busy))
            self._busy = False
            self._delayed -= 1

    async def release(self) -> None:
        """Let the delayed responses be sent."""
        if self._answered:
            self._busy = self._answered = False
            await self._meanwhile(_until(lambda: not self._delayed))


async def _until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + _MOST
    while not there() and time.monotonic() < end:
        await asyncio.sleep(0.005)


def _step_of(session: Session) -> tuple[int, int]:
    """The run and the step where a session is paused."""
    return session.snapshot.run, session.snapshot.at
