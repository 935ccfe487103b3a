"""What the user has selected, shared by all widgets of a session: select an operator in one, the others show it too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fluidnb.program import Program


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is selected.

    Args:
        program: the program that it belongs to.
        ops: (block, index) of each operator: one, or all that a cell made.
        variable: the name of a variable, or empty.
        cell: the title of a cell, or empty.
    """

    program: Program
    ops: tuple[tuple[int, int], ...] = ()
    variable: str = ""
    cell: str = ""


class Selection:
    """The selection of the session; notifies observers of changes.

    Attributes:
        chosen: what is selected, or None.
    """

    def __init__(self) -> None:
        self.chosen: Chosen | None = None
        self._looks: list[Callable[[Chosen | None], Any]] = []

    def choose(self, chosen: Chosen | None) -> None:
        """Changes the selection; observers are notified if it differs.

        Args:
            chosen: what, or None for nothing.
        """
        if chosen != self.chosen:
            self.chosen = chosen
            for look in list(self._looks):
                look(chosen)

    def observe(self, look: Callable[[Chosen | None], Any]) -> None:
        """Registers an observer.

        Args:
            look: called with what is selected.
        """
        self._looks.append(look)

    def forget(self, look: Callable[[Chosen | None], Any]) -> None:
        """Removes an observer.

        Args:
            look: what was given to `observe`.
        """
        if look in self._looks:
            self._looks.remove(look)
