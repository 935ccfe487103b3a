"""``%fluid drop``: removes cells from the program."""

from fluidnb_magics.arguments import unquoted
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show
from fluidnb_magics.commands._offers import cells
from fluidnb_magics.session.change_report import report_lines


@command(Section.BUILD, "drop net", cells)
@argument("names", nargs="+", metavar="NAME", help="a cell, as %%fluid cells calls it")
def drop(bench: Workbench, args: Namespace) -> None:
    """Remove cells from the program; later cells that use them are built again."""
    report = bench.drop([unquoted(name) for name in args.names])
    lines = report_lines(bench, report)
    needed = [placed.title for placed in bench.cells if placed.stale and placed.title in dict(report.stale)]
    if needed:
        lines.append([(f"  %fluid drop {' '.join(needed)} removes them too; %fluid undo brings all back", "dim")])
    show(bench.shell, lines)
