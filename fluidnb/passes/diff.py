"""Diff: what differs between two programs, for a rewrite's before and after."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

from fluidnb.program import origin
from fluidnb.program import pseudo_code as codes
from fluidnb.program.program import Program
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc


@dataclass(frozen=True, slots=True)
class BlockDiff:
    """The differences in one block.

    Args:
        block: its index.
        added_vars: variables that only the second program has.
        removed_vars: variables that only the first has.
        changed_vars: name -> its line before and after.
        ops: the operators as (mark, line): ``" "`` for both, ``"-"`` for the first, ``"+"`` for the second program.

    Example:
        >>> bool(BlockDiff(0))
        False
    """

    block: int
    added_vars: list[str] = field(default_factory=list)
    removed_vars: list[str] = field(default_factory=list)
    changed_vars: dict[str, tuple[str, str]] = field(default_factory=dict)
    ops: list[tuple[str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        marks = any(mark != " " for mark, _ in self.ops)
        return bool(self.added_vars or self.removed_vars or self.changed_vars or marks)


@dataclass(frozen=True, slots=True)
class ProgramDiff:
    """The differences between two programs, block by block; false when equal.

    Args:
        blocks: the blocks that differ.

    Example:
        >>> bool(ProgramDiff([])), str(ProgramDiff([]))
        (False, 'no difference')
    """

    blocks: list[BlockDiff]

    def __bool__(self) -> bool:
        return bool(self.blocks)

    def __str__(self) -> str:
        if not self.blocks:
            return "no difference"
        lines = []
        for block in self.blocks:
            lines.append(f"block {block.block}")
            lines += [f"  - {line}" for line in block.removed_vars]
            lines += [f"  + {line}" for line in block.added_vars]
            for before, after in block.changed_vars.values():
                lines += [f"  - {before}", f"  + {after}"]
            lines += _excerpt(block.ops)
        return "\n".join(lines)


def diff(before: Program | ProgramDesc, after: Program | ProgramDesc, details: bool = False) -> ProgramDiff:
    """Compares two programs.

    Args:
        before: the first.
        after: the second.
        details: whether attributes that say who made an operator count too.

    Returns:
        The differences, as data; ``str`` of them is text.

    Example:
        >>> p = Program(); q = p.clone()
        >>> x = q.global_block().create_var(name="x", shape=[2], dtype="float32")
        >>> print(diff(p, q))
        block 0
          + var x : LOD_TENSOR.shape(2).dtype(float32)
    """
    first, second = _desc(before), _desc(after)
    empty = BlockDesc(first, -1, -1)
    blocks = []
    for index in range(max(len(first.blocks), len(second.blocks))):
        old = first.blocks[index] if index < len(first.blocks) else empty
        new = second.blocks[index] if index < len(second.blocks) else empty
        found = _block(index, old, new, details)
        if found:
            blocks.append(found)
    return ProgramDiff(blocks)


def _desc(program: Program | ProgramDesc) -> ProgramDesc:
    if isinstance(program, Program):
        origin.saw_list(program)
        return program.desc
    return program


def _block(index: int, old: BlockDesc, new: BlockDesc, details: bool) -> BlockDiff:
    def line(var: VarDesc) -> str:
        return codes.var_code(var)

    def lines(ops: list[OpDesc]) -> list[str]:
        return [codes.op_code(op, details) for op in ops]

    both = [n for n in old.vars if n in new.vars]
    pairs = {n: (line(old.vars[n]), line(new.vars[n])) for n in both}
    return BlockDiff(
        index,
        [line(v) for n, v in new.vars.items() if n not in old.vars],
        [line(v) for n, v in old.vars.items() if n not in new.vars],
        {n: pair for n, pair in pairs.items() if pair[0] != pair[1]},
        _marked(lines(old.ops), lines(new.ops)),
    )


def _marked(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            out += [(" ", text) for text in old[i:j]]
        else:
            out += [("-", text) for text in old[i:j]] + [("+", text) for text in new[k:m]]
    return out


def _excerpt(ops: list[tuple[str, str]], around: int = 2) -> list[str]:
    """The operators that differ, with a few around them."""
    marked = [i for i, (mark, _) in enumerate(ops) if mark != " "]
    near = sorted({i for m in marked for i in range(max(0, m - around), min(len(ops), m + around + 1))})
    lines, last = [], -1
    for i in near:
        if i != last + 1:
            lines.append("    ...")
        lines.append(f"  {ops[i][0]} {ops[i][1]}")
        last = i
    return lines
