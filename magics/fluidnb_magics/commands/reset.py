"""``%fluid reset``: removes all cells, or all trained values."""

from fluidnb.runtime import global_scope
from fluidnb.viz.base.styled_text import plural
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show
from fluidnb_magics.session.change_report import report_lines


@command(Section.BUILD, "reset --params")
@argument("--params", action="store_true", help="only the values of parameters: the next run initializes them")
def reset(bench: Workbench, args: Namespace) -> None:
    """Remove all cells from the program, or with --params all trained values.

    ``%fluid undo`` brings removed cells back.
    """
    if args.params:
        names = bench.forget_values(global_scope())
        show(bench.shell, [[(f"{plural(len(names), 'variable')} will be re-initialized on the next run", "")]])
    else:
        show(bench.shell, report_lines(bench, bench.reset()))
