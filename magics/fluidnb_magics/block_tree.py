"""The tree of a program's blocks: who runs each, which cells filled it, whether it is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluidnb.program import Program
from fluidnb.proto.desc import BlockDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.viz.model import plural
from fluidnb.viz.spans import Line, columns
from fluidnb.viz.spans import width as line_width
from fluidnb_magics.groups import OPEN
from fluidnb_magics.workbench import Workbench

_BLOCKS = (AttrType.BLOCK, AttrType.BLOCKS)


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A block in the tree.

    Args:
        index: its index.
        parent: the index of the block around it, -1 for the global one.
        branch: what is drawn in front of it.
        owner: the type of the operator that runs it; empty without one.
        names: how users may call it.
        cells: the cells whose operators it holds.
        ops: how many operators it has.
        vars: how many variables it declares.
        state: ``open``, ``closed``, or what else it is.

    Example:
        >>> BlockLine(0, -1).place
        'the global block'
    """

    index: int
    parent: int
    branch: str = ""
    owner: str = ""
    names: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    ops: int = 0
    vars: int = 0
    state: str = ""

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"in block {self.parent}" if self.parent >= 0 else "the global block"


def read_tree(bench: Workbench, program: Program) -> list[BlockLine]:
    """The blocks of a program, each behind the one around it.

    Args:
        bench: knows who opened them.
        program: the program.

    Returns:
        A line for each block.
    """
    blocks = program.desc.blocks
    owners = {index: op.optype for block in blocks for op in block.ops for index in _runs(op, block)}
    opening = {(p.key, 1) for p in bench.cells if p.group.state == OPEN and not p.stale}
    lines: list[BlockLine] = []

    def add(block: BlockDesc, branch: str, below: str) -> None:
        opened = bench.blocks.of(block)
        state = "" if block.parent_idx < 0 else "closed" if block.idx in owners else "not run by any operator"
        if opened is not None and (opened.key, opened.number) in opening:
            state = "open"
        if block.forward_block_idx >= 0:
            state = f"walks block {block.forward_block_idx} backwards"
        lines.append(
            BlockLine(
                block.idx, block.parent_idx, branch, owners.get(block.idx, ""), tuple(bench.blocks.called(block)),
                tuple(_cells(block)), len(block.ops), len(block.vars), state,
            )  # fmt: skip
        )
        inner = [b for b in blocks if b.parent_idx == block.idx]
        for each in inner:
            last = each is inner[-1]
            add(each, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))

    add(blocks[0], "", "")
    return lines


def tree_lines(tree: Sequence[BlockLine], limit: int = 0) -> list[Line]:
    """The text face of a tree.

    Args:
        tree: its lines, at least one.
        limit: characters that a line may have; 0 for any number.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.viz.spans import plain
        >>> tree = [BlockLine(0, -1, ops=3, vars=4), BlockLine(1, 0, "└─ ", "while", ("turns",), ("loop",), 2)]
        >>> print(plain(tree_lines(tree)))
        block 0     the global block                                  3 ops, 4 variables
        └─ block 1  in block 0        while  turns  from cell loop  2 ops, 0 variables
    """
    rows: list[list[Line]] = []
    for line in tree:
        cells = "" if not line.cells else f"from cell{'s' if len(line.cells) > 1 else ''} {', '.join(line.cells)}"
        counts = f"{plural(line.ops, 'op')}, {plural(line.vars, 'variable')}"
        rows.append(
            [
                [(line.branch, "dim"), (f"block {line.index}", "name")], [(line.place, "dim")],
                [(line.owner, "forward")], [(", ".join(line.names), "")], [(cells, "place")], [(counts, "")],
                [(line.state, "warn" if line.state == OPEN else "dim")],
            ]  # fmt: skip
        )
    used = [i for i in range(len(rows[0])) if any(line_width(row[i]) for row in rows)]
    return columns(([row[i] for i in used] for row in rows), limit)


def _runs(op: object, block: BlockDesc) -> list[int]:
    """The blocks inside a block that one of its operators runs; a gradient also names its forward's block."""
    found: list[int] = []
    for name, value in op.attrs.items():  # type: ignore[attr-defined]
        if op.attr_type(name) in _BLOCKS:  # type: ignore[attr-defined]
            found += value if isinstance(value, list) else [value]
    return [i for i in found if block.program.blocks[i].parent_idx == block.idx]


def _cells(block: BlockDesc) -> list[str]:
    """The titles of the cells whose operators a block holds; of the one that opened it while it holds none."""
    views = [op.view for op in block.ops] or [block.view]
    made_by = [view.origin for view in views if view is not None and view.origin is not None]
    return list(dict.fromkeys(origin.title for origin in made_by)) if block.idx else []
