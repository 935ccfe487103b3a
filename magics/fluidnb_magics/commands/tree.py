"""``%fluid tree``: the nested blocks of a program."""

from dataclasses import replace

from fluidnb.program import Program
from fluidnb.viz import tree_lines
from fluidnb.viz.program.block_tree import BlockLine, read_tree
from fluidnb_magics.commands._command import Namespace, Section, Workbench, command, program_option, startup_option
from fluidnb_magics.display import show, width
from fluidnb_magics.session.cell_groups import OPEN


@command(Section.INSPECT, "tree")
@startup_option()
@program_option()
def tree(bench: Workbench, args: Namespace) -> None:
    """Show the tree of a program's blocks, with the operators of each role counted."""
    program = bench.existing(args.program)[args.startup]
    show(bench.shell, tree_lines(named_tree(bench, program), width(bench.shell), roles=True))


def named_tree(bench: Workbench, program: Program) -> list[BlockLine]:
    """The blocks of a program, with the names that users give them and whether they are open."""
    opening = {(p.key, 1) for p in bench.cells if p.group.state == OPEN and not p.stale}
    lines = []
    for line in read_tree(program):
        block = program.desc.blocks[line.index]
        opened, walked = bench.blocks.of(block), block.forward_block_idx >= 0
        state = "open" if opened and not walked and (opened.key, opened.number) in opening else line.state
        lines.append(replace(line, names=tuple(bench.blocks.called(block)), state=state))
    return lines
