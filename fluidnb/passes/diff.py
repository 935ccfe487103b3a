"""Diff: the differences of two programs, for example before and after a rewrite."""

import difflib
from dataclasses import dataclass, field

from fluidnb.program import origin
from fluidnb.program import pseudo_code as codes
from fluidnb.program.program import Program
from fluidnb.proto.desc import BlockDesc, ProgramDesc
from fluidnb.utils.representations import repr_html, repr_pretty


@dataclass(frozen=True, slots=True)
class BlockDiff:
    """The differences in one block."""

    block: int  # its index
    added_vars: list[str] = field(default_factory=list)  # variables that only the second program has
    removed_vars: list[str] = field(default_factory=list)  # variables that only the first has
    changed_vars: dict[str, tuple[str, str]] = field(default_factory=dict)  # name -> its line before and after
    # the operators as (mark, line): ``" "`` for both, ``"-"`` for the first, ``"+"`` for the second program
    ops: list[tuple[str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        marks = any(mark != " " for mark, _ in self.ops)
        return bool(self.added_vars or self.removed_vars or self.changed_vars or marks)


@dataclass(frozen=True, slots=True)
class ProgramDiff:
    """The differences between two programs, block by block; false when equal."""

    blocks: list[BlockDiff]  # the blocks that differ

    def __bool__(self) -> bool:
        return bool(self.blocks)

    def rows(self) -> list[tuple[str, str]]:
        """The differences as (mark, line), marks as in `BlockDiff`; an empty mark begins a block."""
        rows = []
        for block in self.blocks:
            rows.append(("", f"block {block.block}"))
            rows += [("-", line) for line in block.removed_vars]
            rows += [("+", line) for line in block.added_vars]
            for before, after in block.changed_vars.values():
                rows += [("-", before), ("+", after)]
            rows += _excerpt(block.ops)
        return rows or [("", "no difference")]

    def __repr__(self) -> str:
        return f"ProgramDiff(blocks that differ: {', '.join(str(b.block) for b in self.blocks) or 'none'})"

    def __str__(self) -> str:
        return "\n".join(f"  {mark} {line}" if mark else line for mark, line in self.rows())

    _repr_html_ = repr_html
    _repr_pretty_ = repr_pretty


def diff(before: Program | ProgramDesc, after: Program | ProgramDesc, details: bool = False) -> ProgramDiff:
    """Compares two programs; the differences are data, and ``str`` of them is text."""
    first, second = _desc(before), _desc(after)
    empty = BlockDesc(first, -1, -1)
    blocks = []
    for index in range(max(len(first.blocks), len(second.blocks))):
        old = first.blocks[index] if index < len(first.blocks) else empty
        new = second.blocks[index] if index < len(second.blocks) else empty
        if different := _block(index, old, new, details):
            blocks.append(different)
    return ProgramDiff(blocks)


def _desc(program: Program | ProgramDesc) -> ProgramDesc:
    if isinstance(program, Program):
        origin.saw_list(program)
        return program.desc
    return program


def _block(index: int, old: BlockDesc, new: BlockDesc, details: bool) -> BlockDiff:
    before, after = ({n: codes.var_code(v) for n, v in block.vars.items()} for block in (old, new))
    return BlockDiff(
        index,
        [line for n, line in after.items() if n not in before],
        [line for n, line in before.items() if n not in after],
        {n: (line, after[n]) for n, line in before.items() if n in after and after[n] != line},
        _marked(*([codes.op_code(op, details) for op in block.ops] for block in (old, new))),
    )


def _marked(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            out += [(" ", text) for text in old[i:j]]
        else:
            out += [("-", text) for text in old[i:j]] + [("+", text) for text in new[k:m]]
    return out


def _excerpt(ops: list[tuple[str, str]], around: int = 2) -> list[tuple[str, str]]:
    """The operators that differ, with a few around them."""
    marked = [i for i, (mark, _) in enumerate(ops) if mark != " "]
    near = sorted({i for m in marked for i in range(max(0, m - around), min(len(ops), m + around + 1))})
    rows, last = [], -1
    for i in near:
        if i != last + 1:
            rows.append((" ", "..."))
        rows.append(ops[i])
        last = i
    return rows
