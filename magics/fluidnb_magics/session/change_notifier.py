"""Change notification after each cell, at most ten times a second and less often if observers are slow."""

import asyncio
import time
import traceback
from collections.abc import Callable
from typing import Any

#: Minimum seconds between two notifications, and that as a multiple of the last one's duration.
PAUSE, SHARE = 0.1, 4


class ChangeNotifier:
    """Notifies observers that a cell has run; listens to the shell only while there are any."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._observers: list[Callable[[], Any]] = []
        self._again = 0.0
        self._later: asyncio.TimerHandle | None = None

    def observe(self, observer: Callable[[], Any]) -> None:
        """Adds an observer."""
        if not self._observers:
            self._shell.events.register("post_run_cell", self._after_cell)
        self._observers.append(observer)

    def forget(self, observer: Callable[[], Any]) -> None:
        """Remove an observer."""
        if observer in self._observers:
            self._observers.remove(observer)
            if not self._observers:
                self._shell.events.unregister("post_run_cell", self._after_cell)

    def close(self) -> None:
        """Stops the notifications."""
        for observer in list(self._observers):
            self.forget(observer)

    def _after_cell(self, result: Any) -> None:
        wait = self._again - time.monotonic()
        if wait <= 0:
            self._notify()
        elif self._later is None:
            try:
                self._later = asyncio.get_running_loop().call_later(wait, self._notify)
            except RuntimeError:  # a shell without a loop, where nothing can be put off
                self._notify()

    def _notify(self) -> None:
        self._later = None
        start = time.monotonic()
        for observer in list(self._observers):
            try:
                observer()
            except Exception:
                traceback.print_exc()
        end = time.monotonic()
        self._again = end + max(PAUSE, SHARE * (end - start))
