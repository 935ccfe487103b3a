"""``%fluid plan``: how a program was run."""

from __future__ import annotations

from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.viz.program.plan_text import plan_lines
from fluidnb_magics.arguments import parse_argstring
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench


@magic_arguments("fluid plan")
@argument("--program", help="a program of this session")
def plan(bench: Workbench, line: str) -> None:
    """Show the compiled program of the last run: its place, and copies, casts and layout conversions around kernels.

    Nothing runs.
    """
    args = parse_argstring(plan, line)
    show(bench.shell, plan_lines(bench.existing(args.program)[0]))
