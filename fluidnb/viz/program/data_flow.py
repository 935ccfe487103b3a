"""Data-flow edges between operators, and their lanes beside the rows of a listing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluidnb.viz.program.model import OpRow

#: Lanes beside the rows; edges without a free lane are omitted, the longest first.
MOST_LANES = 10


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from the writer of a variable to a reader.

    Args:
        name: the variable.
        first: the row that writes it.
        last: the row that reads it.
        lane: its lane, from 0 next to the rows.
    """

    name: str
    first: int
    last: int
    lane: int


def flows(ops: Sequence[tuple[int, OpRow]]) -> list[tuple[str, int, int]]:
    """Data-flow edges in program order: (variable, row that wrote it last, row that reads it).

    An operator with blocks only passes values on, so the edges lead to the operators inside.

    Example:
        >>> from fluidnb.viz.program.model import SlotRow, VarRow
        >>> x = (SlotRow("X", (VarRow("x"),)),)
        >>> flows([(0, OpRow(0, 0, "a", "forward", outs=x)), (1, OpRow(0, 1, "b", "forward", ins=x))])
        [('x', 0, 1)]
    """
    written: dict[str, int] = {}
    edges = []
    for row, op in ops:
        if not op.blocks:
            for name in dict.fromkeys(v.name for v in op.reads):
                if name in written:
                    edges.append((name, written[name], row))
            written.update((v.name, row) for v in op.writes)
    return edges


def lanes(ops: Sequence[tuple[int, OpRow]], most: int = MOST_LANES, by_writer: bool = False) -> list[Edge]:
    """Assigns lanes to edges, the shortest first; edges of one value share a lane where possible.

    With ``by_writer`` all values of one writer share a lane, and the edges have no names.

    Example:
        >>> from fluidnb.viz.program.model import SlotRow, VarRow
        >>> x, y = ((SlotRow("X", (VarRow(name),)),) for name in "xy")
        >>> a, b = OpRow(0, 0, "a", "forward", outs=x), OpRow(0, 1, "b", "forward", x, y)
        >>> ops = [a, b, OpRow(0, 2, "c", "forward", x)]
        >>> [(e.name, e.first, e.last, e.lane) for e in lanes(list(enumerate(ops)))]
        [('x', 0, 1, 0), ('x', 0, 2, 0)]
    """
    pairs = dict.fromkeys(("" if by_writer else name, first, last) for name, first, last in flows(ops))
    taken: list[dict[tuple[str, int], int]] = [{} for _ in range(most)]  # per lane: value -> its last row
    edges = []
    for name, first, last in sorted(pairs, key=lambda e: (e[2] - e[1], e[1])):
        value = (name, first)
        own = sorted(range(most), key=lambda i: value not in taken[i])
        lane = next((i for i in own if _is_free(taken[i], value, last)), None)
        if lane is not None:
            taken[lane][value] = last
            edges.append(Edge(name, first, last, lane))
    return edges


def _is_free(lane: dict[tuple[str, int], int], value: tuple[str, int], last: int) -> bool:
    return all(other == value or last <= other[1] or value[1] >= end for other, end in lane.items())
