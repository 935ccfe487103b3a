"""A cell and the cells that append to its blocks: one part of the program, run as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace

from fluidnb.cells.cell_log import CellRun
from fluidnb_magics.session.cells import Cell

#: What became of a block that ``%fluid block open`` opened.
OPEN, CLOSED = "open", "closed"


@dataclass(frozen=True, slots=True)
class Spot:
    """The block of a cell to which another cell appends.

    Args:
        label: a name of the block, ``turns`` or ``ie.true_block``; empty where any block counts.
        number: which of the cell's blocks with that name, from 1 in the order in which they end; without a name, which
            of all, in the order in which they begin.

    Example:
        >>> Spot("turns")
        Spot(label='turns', number=1)
    """

    label: str = ""
    number: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """A cell with those that append to its blocks.

    Args:
        cell: the cell.
        parts: the cells that go on, in the order of their first run; each is put at the end of its block.
        spot: the block to which it appends; None for other cells.
        state: `OPEN` or `CLOSED` for a block of ``%fluid block open``, empty for a cell.

    Example:
        >>> loop = Group(Cell("l", "loop", "…")).with_part("l", Group(Cell("b", "body", "…"), (), Spot()))
        >>> [g.cell.name for g in loop.walk()], loop.without("b").parts
        (['loop', 'body'], ())
    """

    cell: Cell
    parts: tuple[Group, ...] = ()
    spot: Spot | None = None
    state: str = ""

    @property
    def key(self) -> Hashable:
        """What identifies the cell."""
        return self.cell.key

    def walk(self) -> Iterator[Group]:
        """This cell and all that append to its blocks, recursively."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def find(self, key: Hashable) -> Group | None:
        """The group of a cell in here, or None."""
        return next((g for g in self.walk() if g.key == key), None)

    def around(self, key: Hashable) -> Group | None:
        """The group that a cell in here is a part of, or None."""
        return next((g for g in self.walk() if any(p.key == key for p in g.parts)), None)

    def with_part(self, owner: Hashable, part: Group) -> Group:
        """This with a part more, or with another in place of the one that the same cell had there.

        Args:
            owner: key of the cell in here whose part it becomes.
            part: the part.
        """
        around = self.around(part.key)
        if around is not None and around.key != owner:
            return self.without(part.key).with_part(owner, part)
        if self.key != owner:
            return replace(self, parts=tuple(p.with_part(owner, part) for p in self.parts))
        if around is None:
            return replace(self, parts=(*self.parts, part))
        return replace(self, parts=tuple(part if p.key == part.key else p for p in self.parts))

    def arranged(self, place: Callable[[Cell], int | None]) -> Group:
        """This with its parts in the order of the notebook; those whose place is not known stay behind the one before.

        Args:
            place: a cell's place in the notebook, or None.
        """
        rows: list[tuple[int, Group]] = []
        for part in self.parts:
            at = place(part.cell)
            rows.append(((rows[-1][0] if rows else -1) if at is None else at, part.arranged(place)))
        parts = tuple(part for _, part in sorted(rows, key=lambda row: row[0]))
        return self if parts == self.parts else replace(self, parts=parts)

    def without(self, key: Hashable) -> Group:
        """This group without a cell and those that append to its blocks."""
        return replace(self, parts=tuple(p.without(key) for p in self.parts if p.key != key))


@dataclass(frozen=True, slots=True)
class Placed:
    """A cell with its position among all.

    Args:
        group: the cell with its parts.
        fragment: what it is in the log, alone or together with the cells around it.
        owner: the cell to whose block it appends, or None.
        depth: how many cells are around it.
    """

    group: Group
    fragment: CellRun
    owner: Group | None = None
    depth: int = 0

    @property
    def cell(self) -> Cell:
        """The cell."""
        return self.group.cell

    @property
    def key(self) -> Hashable:
        """What identifies the cell."""
        return self.group.key

    @property
    def title(self) -> str:
        """How people call it."""
        return self.cell.title

    def differs(self, other: Placed) -> bool:
        """Whether the cell is another one than at another time: its text, or for the same text what it built."""
        mine, its = self.group, other.group
        if (mine.cell, mine.state, mine.spot, self.stale) != (its.cell, its.state, its.spot, other.stale):
            return True
        return self.depth == 0 and mine == its and self.fragment.origin is not other.fragment.origin

    @property
    def program(self) -> str | None:
        """The name of the program that it builds; None for the default one."""
        name: str | None = self.fragment.task.source.cell.program
        return name

    @property
    def stale(self) -> str:
        """Why it is not part of the program now; empty while it is."""
        return self.fragment.stale


def placed(fragment: CellRun) -> Iterator[Placed]:
    """The cells of a fragment.

    Args:
        fragment: what the log has.

    Yields:
        Each cell, followed by those that append to its blocks.
    """

    def inside(group: Group, owner: Group | None, depth: int) -> Iterator[Placed]:
        yield Placed(group, fragment, owner, depth)
        for part in group.parts:
            yield from inside(part, group, depth + 1)

    yield from inside(fragment.task.source, None, 0)
