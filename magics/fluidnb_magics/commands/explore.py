"""``%fluid explore``: the widget that browses a program."""

from fluidnb_magics.arguments import unquoted
from fluidnb_magics.commands._command import Namespace, Section, argument, command, program_option, startup_option
from fluidnb_magics.display import show_widget
from fluidnb_magics.session.program_parts import picture_of
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT, "explore")
@argument("what", nargs="*", help="a cell, program, block, operators 0:12-40, or an expression; the program if empty")
@startup_option()
@program_option()
def explore(bench: Workbench, args: Namespace) -> None:
    """Browse a program: collapsible list, search, uses of variables, graph.

    The widget follows the program: it is updated when cells run, and highlights the next operator of a debug session.
    The selection is shared with the other widgets. In a terminal it is the listing of %fluid show.
    """
    what = unquoted(" ".join(args.what))
    if picture_of(bench, what, args.program, args.startup, 1) is None:
        return
    from fluidnb_magics.widgets.explorer import Explorer

    show_widget(bench.shell, Explorer(bench, what, args.program, args.startup))
