"""``%fluid scope``: the values in the global scope."""

from typing import Any

from fluidnb.errors import NotFound, near
from fluidnb.runtime import global_scope
from fluidnb.values.device_array import printed
from fluidnb.values.tensor import array_of
from fluidnb.viz import read_preview, read_scope, read_tensor, scope_html, scope_lines, tensor_html, tensor_lines
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show, show_widget, width
from fluidnb_magics.commands._offers import scope_variables


@command(Section.INSPECT, "scope h.w_0", scope_variables)
@argument("name", nargs="?", help="a variable; all of them if left out")
@argument("--live", action="store_true", help="a widget that follows what runs")
def scope(bench: Workbench, args: Namespace) -> None:
    """Show the values in the global scope, or one of them.

    The scopes of blocks, which a run with --keep leaves, are shown too. --live opens a widget to search and expand the
    values, which follows runs and debug sessions.
    """
    top = global_scope()
    if args.live:
        from fluidnb_magics.widgets.scope_explorer import ScopeExplorer

        show_widget(bench.shell, ScopeExplorer(bench, top, args.name))
        return
    if args.name is None:
        row = read_scope(top, "global scope", previews=True)
        show(bench.shell, scope_lines(row, width(bench.shell)), lambda: scope_html(row))
        return
    variable = _find_var(top, args.name)
    if variable is None:
        hint = near(args.name, top.local_var_names()) or "%fluid scope lists its variables."
        raise NotFound(f"the scope has no variable {args.name}.", received=args.name, hint=hint)
    value = variable.value
    if not hasattr(value, "lod_"):
        show(bench.shell, [[(args.name, "name"), (f"  {value!r}", "")]])
        return
    summary = read_tensor(value, args.name)
    array = array_of(value)
    rows: list[Line] = [[("  " + row, "")] for row in ([] if array is None else str(printed(array)).splitlines())]
    html = tensor_html(summary, read_preview(array)) + lines_html(rows)
    show(bench.shell, [*tensor_lines(summary), *rows], lambda: html)


def _find_var(top: Any, name: str) -> Any:
    """The runtime variable of a name, in a scope or in those inside it."""
    return top.find_var(name) or next((v for kid in top.kids if (v := _find_var(kid, name)) is not None), None)
