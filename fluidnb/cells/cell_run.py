"""One cell, one run of it, and what a change of cells led to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from fluidnb.cells.bindings import Bound
from fluidnb.cells.build_state import BuildState, Settings
from fluidnb.cells.delta import Delta
from fluidnb.cells.dependencies import Reads
from fluidnb.cells.saved_layer_objects import SavedObject
from fluidnb.program.origin import Origin


@dataclass(frozen=True, slots=True)
class Task:
    """A cell to run.

    Args:
        key: what identifies the cell.
        title: how people call it.
        source: what the host needs to run it.
        again: whether it only runs because an earlier cell changed; what it prints may be dropped then.

    Example:
        >>> Task("a1b2", "net", "h = layers.fc(x, 10)").again
        False
    """

    key: Hashable
    title: str
    source: Any
    again: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CellRun:
    """One run of one cell, and what it did.

    Args:
        task: the cell.
        origin: the run.
        deltas: what it did to programs that were there before.
        reads: what it depends on.
        counters: (generator, key) -> the number after it.
        settings: the settings after it.
        bound: Python names that it bound.
        held: objects of layers and containers that were there and that it changed: before, after.
        ran: whether it ran a program.
        loose: whether it is not a cell but edits made between cells.
        stale: why it is not part of the program now; empty while it is.
        edited: whether its source has changed since this run.
        attempt: what the run read that failed last; the cell stays stale while it would read the same.
        apart: whether it is a part that failed, taken out of the cell with which it ran; the host puts it in again.
    """

    task: Task
    origin: Origin
    deltas: list[Delta]
    reads: Reads
    counters: dict[Any, int]
    settings: Settings
    bound: Bound
    held: list[tuple[SavedObject, SavedObject]] = field(default_factory=list)
    ran: bool = False
    loose: bool = False
    stale: str = ""
    edited: bool = False
    attempt: Reads | None = None
    apart: bool = False

    @property
    def key(self) -> Hashable:
        """The identity of the cell."""
        return self.task.key

    @property
    def title(self) -> str:
        """The display name of the cell."""
        return self.task.title


@dataclass(slots=True)
class Report:
    """The result of a change of cells; titles of cells in program order.

    Args:
        executed: cells that ran, the requested one included; it comes first.
        kept: later cells that were put back as they were.
        stale: cells that are no longer part of the program because of this change, with the reason.
        removed: cells that went.
        unchanged: whether the requested cell built what it had built before.

    Example:
        >>> Report(["net"]).executed
        ['net']
    """

    executed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    stale: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    unchanged: bool = False

    def copy(self) -> Report:
        """A copy with separate lists."""
        return Report(list(self.executed), list(self.kept), dict(self.stale), list(self.removed), self.unchanged)

    def become(self, other: Report) -> None:
        """Say what another report says."""
        its = other.copy()
        self.executed, self.kept, self.stale, self.removed = its.executed, its.kept, its.stale, its.removed
        self.unchanged = its.unchanged


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Everything before a change, to go back to."""

    world: BuildState
    fragments: tuple[CellRun, ...]
    names: dict[str, Any]
    title: str
