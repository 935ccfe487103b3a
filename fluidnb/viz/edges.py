"""Lines of data flow: who writes what an operator reads, and a lane beside the rows for each line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluidnb.viz.model import OpRow

#: Lanes beside the rows; lines that find none free are left out, the longest first.
MOST_LANES = 10


@dataclass(frozen=True, slots=True)
class Edge:
    """One value on its way.

    Args:
        name: the variable.
        first: the row that writes it.
        last: the row that reads it.
        lane: the lane in which it is drawn, from 0, next to the rows.
    """

    name: str
    first: int
    last: int
    lane: int


def flows(ops: Sequence[tuple[int, OpRow]]) -> list[tuple[str, int, int]]:
    """Where values come from, in program order.

    Args:
        ops: (row, operator), nested blocks right after the operator that runs them.

    Returns:
        (variable, row that wrote it last, row that reads it). An operator with blocks only passes values on, so the
        lines go to the operators inside.

    Example:
        >>> from fluidnb.viz.model import SlotRow, VarRow
        >>> x = (SlotRow("X", (VarRow("x"),)),)
        >>> flows([(0, OpRow(0, 0, "a", "forward", outs=x)), (1, OpRow(0, 1, "b", "forward", ins=x))])
        [('x', 0, 1)]
    """
    written: dict[str, int] = {}
    found = []
    for row, op in ops:
        if not op.blocks:
            for name in dict.fromkeys(v.name for v in op.reads):
                if name in written:
                    found.append((name, written[name], row))
            written.update((v.name, row) for v in op.writes)
    return found


def lanes(ops: Sequence[tuple[int, OpRow]], most: int = MOST_LANES) -> list[Edge]:
    """A lane for each line, short ones next to the rows; lines of one value share theirs.

    Args:
        ops: (row, operator).
        most: how many lanes there are.

    Returns:
        The lines that found a lane.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    for name, first, last in flows(ops):
        groups.setdefault((name, first), []).append(last)
    taken: list[list[tuple[int, int]]] = [[] for _ in range(most)]
    edges = []
    for (name, first), ends in sorted(groups.items(), key=lambda g: (max(g[1]) - g[0][1], g[0][1])):
        lane = next((i for i, used in enumerate(taken) if all(max(ends) <= a or first >= b for a, b in used)), None)
        if lane is not None:
            taken[lane].append((first, max(ends)))
            edges += [Edge(name, first, last, lane) for last in ends]
    return edges
