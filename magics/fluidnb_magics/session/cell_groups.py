"""A cell and the cells that append to its blocks: one part of the program, run as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import cast

from fluidnb.cells.cell_log import CellRun
from fluidnb_magics.session.cells import Cell

#: The states of a block that ``%fluid block open`` opened.
OPEN, CLOSED = "open", "closed"


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A reference to the block of a cell to which another cell appends."""

    label: str = ""  # a name of the block, ``turns`` or ``ie.true_block``; empty where any block counts
    # its number among the cell's blocks with that name, in the order in which they end; without a name, among all, in
    # the order in which they begin; from 1
    number: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """A cell with those that append to its blocks."""

    cell: Cell
    parts: tuple[Group, ...] = ()  # in the order of their first run; each runs at the end of its block
    target: BlockRef | None = None  # the block to which it appends; None for other cells
    state: str = ""  # `OPEN` or `CLOSED` for a block of ``%fluid block open``, empty for a cell
    first_run: int = 0  # its number in the order of first runs, so that a part that failed gets its position back

    @property
    def key(self) -> Hashable:
        """The key of the cell."""
        return self.cell.key

    def walk(self) -> Iterator[Group]:
        """This cell and all that append to its blocks, recursively."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def find(self, key: Hashable) -> Group | None:
        """The group of a cell in here."""
        return next((g for g in self.walk() if g.key == key), None)

    def around(self, key: Hashable) -> Group | None:
        """The group of which a cell in here is a part."""
        return next((g for g in self.walk() if any(p.key == key for p in g.parts)), None)

    def with_part(self, owner: Hashable, part: Group) -> Group:
        """This group with one part more, or with another one in place of that of the same cell."""
        around = self.around(part.key)
        if around is not None and around.key != owner:
            return self.without(part.key).with_part(owner, part)
        if self.key != owner:
            return replace(self, parts=tuple(p.with_part(owner, part) for p in self.parts))
        if around is None:
            return replace(self, parts=(*self.parts, part))
        return replace(self, parts=tuple(part if p.key == part.key else p for p in self.parts))

    def arranged(self, position: Callable[[Group], int | None]) -> Group:
        """This group with its parts in the order of the notebook; those without a position follow the one before."""
        rows: list[tuple[int, Group]] = []
        for part in self.parts:
            at = position(part)
            rows.append(((rows[-1][0] if rows else -1) if at is None else at, part.arranged(position)))
        parts = tuple(part for _, part in sorted(rows, key=lambda row: row[0]))
        return self if parts == self.parts else replace(self, parts=parts)

    def without(self, key: Hashable) -> Group:
        """This group without a cell and those that append to its blocks."""
        return replace(self, parts=tuple(p.without(key) for p in self.parts if p.key != key))


@dataclass(frozen=True, slots=True)
class Placed:
    """A cell with its position among all."""

    group: Group  # the cell with its parts
    # its run in the log, alone or together with the cells around it
    run: CellRun  # its run in the log, alone or together with the cells around it
    owner: Group | None = None  # the cell to whose block it appends, or None
    depth: int = 0  # how many cells are around it

    @property
    def cell(self) -> Cell:
        """The cell."""
        return self.group.cell

    @property
    def key(self) -> Hashable:
        """The key of the cell."""
        return self.group.key

    @property
    def title(self) -> str:
        """The cell's name for people."""
        return self.cell.title

    def is_called(self, name: str) -> bool:
        """Whether users call the cell by a name."""
        return name in (self.cell.name, self.title)

    def differs(self, other: Placed) -> bool:
        """Whether the cell is another one than at another time: its text, or for the same text what it built."""
        mine, its = self.group, other.group
        if (mine.cell, mine.state, mine.target, self.stale) != (its.cell, its.state, its.target, other.stale):
            return True
        return self.depth == 0 and mine == its and self.run.origin is not other.run.origin

    @property
    def program(self) -> str | None:
        """The name of the program that it builds; None for the default one."""
        return cast("Cell", self.run.task.source.cell).program

    @property
    def stale(self) -> str:
        """The reason why it is not part of the program now; empty while it is."""
        return self.run.stale


def placed(run: CellRun) -> Iterator[Placed]:
    """The cells of a cell run, each followed by those that append to its blocks."""

    def inside(group: Group, owner: Group | None, depth: int) -> Iterator[Placed]:
        yield Placed(group, run, owner, depth)
        for part in group.parts:
            yield from inside(part, group, depth + 1)

    yield from inside(run.task.source, None, 0)
