"""Change notification after each cell, throttled: observers are called at most ten
times a second, and less often if they are slow."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable
from typing import Any

#: Minimum seconds between two notifications, and that as a multiple of the last one's duration.
PAUSE, SHARE = 0.1, 4


class ChangeNotifier:
    """Notifies observers that a cell has run. Registers the shell's event only while there are any.

    Args:
        shell: the IPython shell.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._looks: list[Callable[[], Any]] = []
        self._again = 0.0
        self._later: asyncio.TimerHandle | None = None

    def observe(self, look: Callable[[], Any]) -> None:
        """Registers an observer.

        Args:
            look: called without anything, in the thread that runs cells.
        """
        if not self._looks:
            self._shell.events.register("post_run_cell", self._after_cell)
        self._looks.append(look)

    def forget(self, look: Callable[[], Any]) -> None:
        """Removes an observer.

        Args:
            look: what was given to `observe`.
        """
        if look in self._looks:
            self._looks.remove(look)
            if not self._looks:
                self._shell.events.unregister("post_run_cell", self._after_cell)

    def close(self) -> None:
        """Removes all observers."""
        for look in list(self._looks):
            self.forget(look)

    def _after_cell(self, result: Any) -> None:
        wait = self._again - time.monotonic()
        if wait <= 0:
            self._tell()
        elif self._later is None:
            try:
                self._later = asyncio.get_running_loop().call_later(wait, self._tell)
            except RuntimeError:  # a shell without a loop, where nothing can be put off
                self._tell()

    def _tell(self) -> None:
        self._later = None
        start = time.monotonic()
        for look in list(self._looks):
            try:
                look()
            except Exception:
                traceback.print_exc()
        end = time.monotonic()
        self._again = end + max(PAUSE, SHARE * (end - start))
