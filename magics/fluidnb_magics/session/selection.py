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
    """Holds what is selected and tells it to whoever looks.

    Attributes:
        chosen: what is selected, or None.
    """

    def __init__(self) -> None:
        self.chosen: Chosen | None = None
        self._looks: list[Callable[[Chosen | None], Any]] = []

    def choose(self, chosen: Chosen | None) -> None:
        """Select something else; nothing is told when it is the same.

        Args:
            chosen: what, or None for nothing.
        """
        if chosen != self.chosen:
            self.chosen = chosen
            for look in list(self._looks):
                look(chosen)

    def observe(self, look: Callable[[Chosen | None], Any]) -> None:
        """Be told from now on.

        Args:
            look: called with what is selected.
        """
        self._looks.append(look)

    def forget(self, look: Callable[[Chosen | None], Any]) -> None:
        """Be told no more.

        Args:
            look: what was given to `observe`.
        """
        if look in self._looks:
            self._looks.remove(look)
