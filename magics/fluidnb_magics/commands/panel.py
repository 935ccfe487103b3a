"""``%fluid panel``: the debugger panel."""

from __future__ import annotations

from typing import Any

from IPython.display import display

from fluidnb.debug.session import Session, current
from fluidnb.errors import NotFound
from fluidnb.extras import is_installed
from fluidnb.viz.session.panel_text import panel_lines
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show, width


@command(Section.DEBUG, "panel")
@argument("--plain", action="store_true", help="only with the widgets of ipywidgets, for front ends without anywidget")
def panel(bench: Workbench, args: Namespace) -> None:
    """Show the panel of the debug session.

    Buttons and keys step forwards and backwards; a click beside an operator sets a breakpoint; scopes, tensors, watches
    and the history are beside the program. The panel and commands such as ``%fluid step`` act on the same session.
    """
    session = current()
    if session is None:
        raise NotFound(
            "There is no debug session.",
            hint="%fluid debug --feed x=... --panel starts one and shows it; %fluid debug on waits for runs.",
        )
    show_panel(bench, session, args.plain)


def show_panel(bench: Workbench, session: Session, plain: bool = False) -> None:
    """Shows the panel of a session, by ipywidgets alone if ``plain``; in a terminal, its text rendering."""
    shell: Any = bench.shell
    if getattr(shell, "kernel", None) is None:
        show(shell, panel_lines(session, width(shell)))
    elif plain or not is_installed("anywidget"):
        from fluidnb_magics.widgets.ipywidgets_panel import PlainPanel

        display(PlainPanel(session))
    else:
        from fluidnb_magics.widgets.panel import Panel

        def cell_id(title: str) -> str:
            return next((p.cell.cell_id or "" for p in bench.cells if p.title == title), "")

        Panel(session, bench.changes, cell_id).show()
