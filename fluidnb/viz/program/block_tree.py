"""The tree of the blocks of a program: owner operator, cells, operators by role."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fluidnb.program.constants import role_of
from fluidnb.proto.desc import BlockDesc, ProgramDesc
from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb.viz.base.styled_text import width as line_width
from fluidnb.viz.program.model import ROLES
from fluidnb.viz.program.reader import sub_blocks


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A block in the tree."""

    index: int
    parent: int  # the index of the block around it, -1 for the global one
    branch: str = ""  # tree lines drawn before it
    owner: str = ""  # the type of the operator that runs it; empty without one
    names: tuple[str, ...] = ()  # aliases of the block
    cells: tuple[str, ...] = ()  # the cells that appended its operators
    ops: int = 0  # number of operators
    vars: int = 0  # number of declared variables
    state: str = ""  # ``open``, ``closed``, or another state in words
    roles: tuple[int, ...] = ()  # number of operators of each role in `ROLES`


def read_tree(program: Any) -> list[BlockLine]:
    """Reads the blocks of a program, each after its parent."""
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
        lines.append(BlockLine(
            block.idx, block.parent_idx, branch, owners.get(block.idx, ""), (), tuple(_cells(block)), len(block.ops),
            len(block.vars), state, tuple(roles[role] for role in ROLES),
        ))  # fmt: skip
        inner = inside.get(block.idx, [])
        for each in reversed(inner):
            last = each is inner[-1]
            waiting.append((each, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))
    return lines


def tree_lines(tree: Sequence[BlockLine], limit: int = 0, roles: bool = False) -> list[Line]:
    """Text rendering of a block tree; ``roles`` shows operators by role in place of parents and states."""
    rows: list[list[Line]] = []
    for line in tree:
        state = "" if roles and line.owner and line.state != "open" else line.state
        cells = "" if not line.cells else f"from cell{'s' if len(line.cells) > 1 else ''} {', '.join(line.cells)}"
        counts = plural(line.ops, "op") + ("" if roles else f", {plural(line.vars, 'variable')}")
        numbers = zip(ROLES, line.roles, strict=False)
        by_role = [piece for role, n in numbers if n for piece in ((", ", ""), (f"{n:,} {role}", role))]
        around = f"in block {line.parent}" if line.parent >= 0 else "the global block"
        rows.append([
            [(line.branch, "dim"), (f"block {line.index}", "name")], [("" if roles else around, "dim")],
            [(line.owner, "forward")], [(", ".join(line.names), "")], [(cells, "location")], [(counts, "")],
            by_role[1:] if roles else [], [(state, "warn" if state == "open" else "dim")],
        ])  # fmt: skip
    used = [i for i in range(len(rows[0])) if any(line_width(row[i]) for row in rows)]
    return columns(([row[i] for i in used] for row in rows), limit)


def _cells(block: BlockDesc) -> list[str]:
    """Titles of the cells that appended the operators of a block; of an empty block, that opened it."""
    views = [op.view for op in block.ops] or [block.view]
    origins = [view.origin for view in views if view is not None and getattr(view, "origin", None) is not None]
    return list(dict.fromkeys(origin.title for origin in origins)) if block.idx else []
