"""``%fluid drop``: removes cells from the program."""

from __future__ import annotations

from fluidnb_magics.arguments import unquoted
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show
from fluidnb_magics.commands._offers import cells
from fluidnb_magics.session.change_report import report_lines


@command(Section.BUILD, "drop net", cells)
@argument("names", nargs="+", metavar="NAME", help="a cell, as %%fluid cells calls it")
def drop(bench: Workbench, args: Namespace) -> None:
    """Remove cells from the program; later cells that use them are built again."""
    show(bench.shell, report_lines(bench, bench.drop([unquoted(name) for name in args.names])))
