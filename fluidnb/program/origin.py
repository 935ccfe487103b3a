"""Provenance: the cell that created each part of a program, and the reads of the running cell.

While a cell runs, `recorder` collects its reads of earlier state: names looked up, counters, whole lists. From these,
`cell_log` decides whether a later change concerns it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluidnb.program.program import Program
    from fluidnb.program.snapshot import Snapshot
    from fluidnb.program.unique_name import UniqueNameGenerator
    from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc


class Origin:
    """One run of one cell. Operators, variables and programs made by the run point to it.

    Args:
        key: identity of the cell for the host, for example the front end's cell id.
        whole: the run of which this one is a part, where cells run as one; it decides the fate of both.
    """

    __slots__ = ("_fate", "key", "title", "whole")

    def __init__(self, key: Hashable, title: str, whole: Origin | None = None) -> None:
        self.key = key
        self.title = title
        self.whole: Origin = self if whole is None else whole.whole
        self._fate = ""

    @property
    def fate(self) -> str:
        """Empty while what the run made is part of its program, or what became of it: ``variable h …``."""
        return self.whole._fate

    @fate.setter
    def fate(self, fate: str) -> None:
        self.whole._fate = fate


@dataclass(eq=False, slots=True)
class Recorder:
    """Reads of the running cell. Views call it; `cell_log` reads it at the end."""

    origin: Origin
    # (block, name, whether the blocks around count) -> result of the first look-up
    lookups: dict[tuple[BlockDesc, str, bool], VarDesc | None] = field(default_factory=dict)
    # programs of which the cell read a whole list: all operators, all variables, the blocks
    listed: set[Program] = field(default_factory=set)
    ops: set[OpDesc] = field(default_factory=set)  # operators whose slots or attributes it read
    facts: dict[tuple[Program, str], Any] = field(default_factory=dict)  # properties, the random seed for example
    counters: dict[tuple[UniqueNameGenerator, str], int] = field(default_factory=dict)  # the first numbers
    prepended: set[BlockDesc] = field(default_factory=set)  # blocks to which it prepended
    ran: bool = False  # whether it ran a program
    known: set[Program] = field(default_factory=set)  # programs of which the log has a snapshot from before the run
    # programs that it edits though the log did not know them, from before
    met: dict[Program, Snapshot] = field(default_factory=dict)

    def looked_up(self, block: BlockDesc, name: str, desc: VarDesc | None, around: bool = False) -> None:
        """Records a name lookup by the cell in a block, with ``around`` in its ancestors too."""
        self.lookups.setdefault((block, name, around), desc)

    def counted(self, generator: UniqueNameGenerator, key: str, number: int) -> None:
        """The cell got a number from a counter."""
        self.counters.setdefault((generator, key), number)


#: The recorder of the cell that runs, None outside cells.
recorder: Recorder | None = None


def current() -> Origin | None:
    """The run of the cell that runs now, or None outside cells."""
    return None if recorder is None else recorder.origin


def saw_list(program: Program) -> None:
    """Records that the running cell read a whole program; no effect outside cells."""
    if recorder is not None:
        recorder.listed.add(program)


def writing(program: Program) -> None:
    """Note that the running cell is about to edit a program; no effect outside cells."""
    if recorder is not None and program not in recorder.known and not _own(program):
        recorder.known.add(program)
        recorder.met[program] = program.snapshot()


def _own(program: Program) -> bool:
    """Whether the current cell run created a program."""
    return recorder is not None and program.origin is not None and program.origin.whole is recorder.origin.whole


@contextmanager
def part(key: Hashable, title: str) -> Iterator[Origin]:
    """Context for additions of another cell, which runs as a part of the running one."""
    assert recorder is not None, "no cell runs"
    around, recorder.origin = recorder.origin, Origin(key, title, recorder.origin)
    try:
        yield recorder.origin
    finally:
        recorder.origin = around


def ran(program: Program) -> None:
    """Note that the running cell ran a program; no effect outside cells."""
    if recorder is not None:
        recorder.listed.add(program)
        recorder.ran = True


def cell_key(made_by: Origin | None) -> Any:
    """The key of the cell behind an origin, None without one."""
    return None if made_by is None else made_by.key
