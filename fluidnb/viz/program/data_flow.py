"""Data-flow edges between operators, and their lanes beside the rows of a listing."""

from collections.abc import Sequence
from dataclasses import dataclass

from fluidnb.viz.program.model import OpRow

#: Lanes beside the rows; edges without a free lane are omitted, the longest first.
MOST_LANES = 10


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from the writer of a variable to a reader."""

    name: str
    first: int  # the row that writes it
    last: int  # the row that reads it
    lane: int  # its lane, from 0 next to the rows


def flows(ops: Sequence[tuple[int, OpRow]]) -> list[tuple[str, int, int]]:
    """Data-flow edges (variable, row that wrote it last, row that reads it); into blocks, not through them."""
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
