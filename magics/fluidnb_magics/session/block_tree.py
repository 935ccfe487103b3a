"""The tree of a program's blocks as a session knows it: how users call each, and whether it is open."""

from __future__ import annotations

from dataclasses import replace

from fluidnb.program import Program
from fluidnb.viz.program.block_tree import BlockLine, read_tree
from fluidnb_magics.session.cell_groups import OPEN
from fluidnb_magics.session.workbench import Workbench


def named_tree(bench: Workbench, program: Program) -> list[BlockLine]:
    """The blocks of a program, each behind the one around it.

    Args:
        bench: knows who opened them.
        program: the program.

    Returns:
        A line for each block.
    """
    opening = {(p.key, 1) for p in bench.cells if p.group.state == OPEN and not p.stale}
    lines = []
    for line in read_tree(program):
        block = program.desc.blocks[line.index]
        opened, walked = bench.blocks.of(block), block.forward_block_idx >= 0
        state = "open" if opened and not walked and (opened.key, opened.number) in opening else line.state
        lines.append(replace(line, names=tuple(bench.blocks.called(block)), state=state))
    return lines
