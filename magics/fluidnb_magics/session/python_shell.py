"""Names and events, which a session needs of a shell, where none runs: in marimo, scripts, Python's prompt."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any


class Events:
    """The events of IPython that sessions listen to."""

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callable[..., Any]]] = defaultdict(list)

    def register(self, event: str, callback: Callable[..., Any]) -> None:
        """Call a function at an event."""
        self._callbacks[event].append(callback)

    def unregister(self, event: str, callback: Callable[..., Any]) -> None:
        """Do not call it any more."""
        self._callbacks[event].remove(callback)

    def trigger(self, event: str, *args: Any) -> None:
        """Report an event."""
        for callback in list(self._callbacks[event]):
            callback(*args)


class PythonShell:
    """A shell with the user's names alone."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.user_ns = names
        self.events = Events()
