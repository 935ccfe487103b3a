"""``%fluid tree``: the nested blocks of a program."""

from __future__ import annotations

from argparse import Namespace

from IPython.core.magic_arguments import argument

from fluidnb.viz import (
    tree_lines,
)
from fluidnb_magics.commands import Section, command
from fluidnb_magics.display import show, width
from fluidnb_magics.session.block_tree import named_tree
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT)
@argument("--startup", action="store_true", help="the startup program instead of the main one")
@argument("--program", help="a program of this session")
def tree(bench: Workbench, args: Namespace) -> None:
    """Show the tree of a program's blocks, with the operators of each role counted."""
    program = bench.existing(args.program)[args.startup]
    show(bench.shell, tree_lines(named_tree(bench, program), width(bench.shell), roles=True))
