"""The tree of the blocks of a program: owner operator, cells, operators by role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fluidnb.program.op_roles import role_of
from fluidnb.proto.desc import BlockDesc, ProgramDesc
from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb.viz.base.styled_text import width as line_width
from fluidnb.viz.program.model import ROLES
from fluidnb.viz.program.reader import sub_blocks


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A block in the tree.

    Args:
        index: its index.
        parent: the index of the block around it, -1 for the global one.
        branch: tree lines drawn before it.
        owner: the type of the operator that runs it; empty without one.
        names: aliases of the block.
        cells: the cells that appended its operators.
        ops: number of operators.
        vars: number of declared variables.
        state: ``open``, ``closed``, or another state in words.
        roles: number of operators of each role in `ROLES`.

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
    roles: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        """Its parent in words."""
        return f"in block {self.parent}" if self.parent >= 0 else "the global block"


def read_tree(program: Any) -> list[BlockLine]:
    """Reads the blocks of a program, each after its parent.

    Args:
        program: a Program or a ProgramDesc.

    Returns:
        A line for each block.

    Example:
        >>> [(line.place, line.roles) for line in read_tree(fluid.Program())]
        [('the global block', (0, 0, 0))]
    """
    desc: ProgramDesc = getattr(program, "desc", program)
    blocks = desc.blocks
    owners = {index: op.optype for block in blocks for op in block.ops for index in sub_blocks(op, block)}
    inside: dict[int, list[BlockDesc]] = {}
    for block in blocks:
        inside.setdefault(block.parent_idx, []).append(block)
    lines: list[BlockLine] = []
    waiting = [(blocks[0], "", "")]
    while waiting:
        block, branch, below = waiting.pop()
        state = "" if block.parent_idx < 0 else "closed" if block.idx in owners else "not run by any operator"
        if block.forward_block_idx >= 0:
            state = f"gradient block of block {block.forward_block_idx}"
        roles = Counter(map(role_of, block.ops))
        lines.append(
            BlockLine(
                block.idx, block.parent_idx, branch, owners.get(block.idx, ""), (), tuple(_cells(block)),
                len(block.ops), len(block.vars), state, tuple(roles[role] for role in ROLES),
            )  # fmt: skip
        )
        inner = inside.get(block.idx, [])
        for each in reversed(inner):
            last = each is inner[-1]
            waiting.append((each, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))
    return lines


def tree_lines(tree: Sequence[BlockLine], limit: int = 0, roles: bool = False) -> list[Line]:
    """Text rendering of a block tree.

    Args:
        tree: its lines, at least one.
        limit: characters that a line may have; 0 for any number.
        roles: show the operators of each role in place of parents and states.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.viz.base.styled_text import plain
        >>> tree = [BlockLine(0, -1, ops=3, vars=4), BlockLine(1, 0, "└─ ", "while", ("turns",), ("loop",), 2)]
        >>> print(plain(tree_lines(tree)))
        block 0     the global block                                  3 ops, 4 variables
        └─ block 1  in block 0        while  turns  from cell loop  2 ops, 0 variables
    """
    rows: list[list[Line]] = []
    for line in tree:
        state = "" if roles and line.owner and line.state != "open" else line.state
        cells = "" if not line.cells else f"from cell{'s' if len(line.cells) > 1 else ''} {', '.join(line.cells)}"
        counts = plural(line.ops, "op") + ("" if roles else f", {plural(line.vars, 'variable')}")
        rows.append(
            [
                [(line.branch, "dim"), (f"block {line.index}", "name")], [("" if roles else line.place, "dim")],
                [(line.owner, "forward")], [(", ".join(line.names), "")], [(cells, "place")], [(counts, "")],
                _role_counts(line) if roles else [], [(state, "warn" if state == "open" else "dim")],
            ]  # fmt: skip
        )
    used = [i for i in range(len(rows[0])) if any(line_width(row[i]) for row in rows)]
    return columns(([row[i] for i in used] for row in rows), limit)


def _role_counts(line: BlockLine) -> Line:
    parts = [(f"{n:,} {role}", role) for role, n in zip(ROLES, line.roles, strict=False) if n]
    return [piece for i, part in enumerate(parts) for piece in ((", ", ""), part)[i == 0 :]]


def _cells(block: BlockDesc) -> list[str]:
    """Titles of the cells that appended the operators of a block; of an empty block, that opened it."""
    views = [op.view for op in block.ops] or [block.view]
    origins = [view.origin for view in views if view is not None and getattr(view, "origin", None) is not None]
    return list(dict.fromkeys(origin.title for origin in origins)) if block.idx else []
