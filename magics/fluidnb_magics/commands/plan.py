"""``%fluid plan``: the compiled program of the last run."""

from __future__ import annotations

from argparse import Namespace

from IPython.core.magic_arguments import argument

from fluidnb.viz.program.plan_text import plan_lines
from fluidnb_magics.commands import Section, command
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT)
@argument("--program", help="a program of this session")
def plan(bench: Workbench, args: Namespace) -> None:
    """Show the compiled program of the last run, with its transforms.

    For each operator: the device, and the copies, casts and layout conversions around its kernel. Nothing runs.
    """
    show(bench.shell, plan_lines(bench.existing(args.program)[0]))
