"""Text rendering of a graph: operators in order with data-flow edges beside them."""

from collections.abc import Sequence

from fluidnb.viz.base.styled_text import Line, columns
from fluidnb.viz.program.data_flow import Edge, lanes
from fluidnb.viz.program.model import ProgramPicture

#: Lanes of edges at most.
_MOST = 8
#: Sign -> the sign where an edge to an outer lane crosses it.
_CROSSED = {" ": "─", "│": "┼", "╭": "┬", "╰": "┴", "├": "┼"}


def graph_lines(picture: ProgramPicture, width: int = 0) -> list[Line]:
    """A program as a text graph: a row for each node, edges on the left as far as there are lanes."""
    rows = [(depth, op) for block in picture.blocks for depth, op in block.walk()]
    edges = lanes(list(enumerate(op for _, op in rows)), _MOST, by_writer=True)
    gutters = _gutters(edges, len(rows))
    inner = any(op.block for _, op in rows)
    names = [f"{op.block}:{op.index}" if inner else f"{op.index}" for _, op in rows]
    wide = max(map(len, names), default=0)
    body: list[list[Line]] = []
    for gutter, name, (depth, op) in zip(gutters, names, rows, strict=True):
        body.append([
            [(gutter, "dim"), (" " + "   " * depth + f"{name:<{wide}} ", "dim"), *op.pieces], [(op.facts, "dim")],
            [(op.location, "location")],
        ])  # fmt: skip
    return [[(picture.title, "bold"), ("  " + picture.counts, "dim")], *columns(body, width)]


def _gutters(edges: Sequence[Edge], count: int) -> list[str]:
    """The text before each row: its part of every lane, then an arrow if it has inputs."""
    wide = max((e.lane for e in edges), default=-1) + 1
    signs = [[" "] * wide for _ in range(count)]
    reads, touches = [False] * count, [wide] * count
    spans: dict[tuple[int, int], list[int]] = {}
    for e in edges:
        spans.setdefault((e.lane, e.first), []).append(e.last)
    for (lane, first), ends in sorted(spans.items(), key=lambda item: item[0][1]):
        at, last = wide - 1 - lane, max(ends)
        for row in range(first, last + 1):
            old = signs[row][at]
            sign = "╭" if row == first else "╰" if row == last else "├" if row in ends else "│"
            signs[row][at] = "├" if {old, sign} == {"╰", "╭"} else sign
            if row in ends or row == first:
                touches[row] = min(touches[row], at)
            reads[row] |= row in ends
    for row, line in enumerate(signs):
        line[touches[row] + 1 :] = [_CROSSED[sign] for sign in line[touches[row] + 1 :]]
    ends_with = ("─▸" if reads[row] else "──" if touches[row] < wide else "  " for row in range(count))
    return ["".join(line) + end for line, end in zip(signs, ends_with, strict=True)] if wide else [""] * count
