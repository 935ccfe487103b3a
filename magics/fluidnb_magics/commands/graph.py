"""``%fluid graph``: the data flow between operators."""

from fluidnb.extras import is_installed
from fluidnb.viz import graph_html, graph_lines, level
from fluidnb_magics.arguments import positive, unquoted
from fluidnb_magics.commands._command import Namespace, Section, argument, command, program_option, startup_option
from fluidnb_magics.commands._offers import cells_and_blocks
from fluidnb_magics.display import is_watched, show, show_widget, width
from fluidnb_magics.session.program_parts import picture_of
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT, "graph net", cells_and_blocks)
@argument("what", nargs="*", help="a cell, a program, a block, or operators as 0:12-40; the program if empty")
@startup_option()
@program_option()
@argument("--seconds", type=positive, default=20, help="time limit of Graphviz's layout (20)")
def graph(bench: Workbench, args: Namespace) -> None:
    """Draw the data flow between operators, with blocks as boxes.

    At most 300 nodes are drawn; the others are collapsed by layer. A collapsed node names its operators, and ``%fluid
    graph 0:12-40`` expands them. In a notebook it is the graph of %fluid explore: click a node to expand it, use the
    wheel to zoom, drag to move. Graphviz computes the layout if it is installed; Ctrl-C (Interrupt) cancels that and
    shows a listing instead.
    """
    what = unquoted(" ".join(args.what))
    picture = picture_of(bench, what, args.program, args.startup)
    if picture is None:
        return
    if is_watched(bench.shell) and is_installed("anywidget"):
        from fluidnb_magics.widgets.explorer import Explorer

        show_widget(bench.shell, Explorer(bench, what, args.program, args.startup, graph=True))
        return
    shown = level(picture)
    hint = "%fluid graph BLOCK:FIRST-LAST opens a part" if shown != picture else ""
    lines = graph_lines(shown, width(bench.shell))
    show(bench.shell, [*lines, *([[(hint, "dim")]] if hint else [])], lambda: graph_html(shown, hint, args.seconds))
