"""One cell, one run of it, and the report of a change."""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any

from fluidnb.cells.bindings import Bound
from fluidnb.cells.build_state import BuildState, Settings
from fluidnb.cells.delta import Delta
from fluidnb.cells.dependencies import Reads
from fluidnb.cells.saved_layer_objects import SavedObject
from fluidnb.program.origin import Origin


@dataclass(frozen=True, slots=True)
class Task:
    """A cell to run."""

    key: Hashable  # identity of the cell
    title: str
    source: Any  # for the host, which runs it
    again: bool = False  # whether it runs because an earlier cell changed; its output may be dropped then


@dataclass(frozen=True, slots=True, eq=False)
class CellRun:
    """One run of one cell, and its changes."""

    task: Task
    origin: Origin
    deltas: list[Delta]  # changes of programs that were there before
    reads: Reads  # its dependencies
    counters: dict[Any, int]  # (generator, key) -> the number after it
    settings: Settings  # the settings after it
    bound: Bound  # Python names that it bound
    # objects of layers, containers and records that were there and that it changed: before, after
    saved: list[tuple[SavedObject, SavedObject]] = field(default_factory=list)
    ran: bool = False  # whether it ran a program
    loose: bool = False  # whether it is not a cell but edits made between cells
    stale: str = ""  # the reason why it is not part of the program now; empty while it is
    edited: bool = False  # whether its source has changed since this run
    # reads of the last run that failed; the cell stays stale while it would read the same
    attempt: Reads | None = None
    # whether it is a part that failed, taken out of the cell with which it ran; the host puts it in again
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
    """The result of a change of cells; titles of cells in program order."""

    executed: list[str] = field(default_factory=list)  # cells that ran, the requested one included; it comes first
    kept: list[str] = field(default_factory=list)  # later cells that were put back as they were
    # cells that are no longer part of the program because of this change, with the reason
    stale: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)  # cells that went
    unchanged: bool = False  # whether the requested cell built what it had built before

    def copy(self) -> Report:
        """A copy with separate lists."""
        return deepcopy(self)

    def become(self, other: Report) -> None:
        """Take the contents of another report."""
        for each in fields(self):
            setattr(self, each.name, deepcopy(getattr(other, each.name)))


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """The state before a change, for undo."""

    build_state: BuildState
    runs: tuple[CellRun, ...]
    names: dict[str, Any]
    title: str
