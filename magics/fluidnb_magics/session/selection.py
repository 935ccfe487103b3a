"""The user's selection, shared by all widgets of a session."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fluidnb.program import Program


@dataclass(frozen=True, slots=True)
class Chosen:
    """A selection."""

    program: Program  # the program that it belongs to
    ops: tuple[tuple[int, int], ...] = ()  # (block, index) of each operator: one, or all that a cell made
    variable: str = ""  # the name of a variable, or empty
    cell: str = ""  # the title of a cell, or empty


class Selection:
    """The selection of the session; notifies observers of changes."""

    def __init__(self) -> None:
        self.chosen: Chosen | None = None  # None for nothing
        self._observers: list[Callable[[Chosen | None], Any]] = []

    def choose(self, chosen: Chosen | None) -> None:
        """Change the selection; observers are notified if it differs."""
        if chosen != self.chosen:
            self.chosen = chosen
            for observer in list(self._observers):
                observer(chosen)

    def observe(self, observer: Callable[[Chosen | None], Any]) -> None:
        """Adds an observer."""
        self._observers.append(observer)

    def forget(self, observer: Callable[[Chosen | None], Any]) -> None:
        """Remove an observer."""
        if observer in self._observers:
            self._observers.remove(observer)
