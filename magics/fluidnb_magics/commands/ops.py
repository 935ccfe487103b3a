"""``%fluid ops``: what operators there are, and all about one of them."""

from __future__ import annotations

from fnmatch import fnmatch

from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.errors import NotFound, near
from fluidnb.op import all_ops, has_op
from fluidnb.viz import lines_html, list_lines, read_op, sheet_lines
from fluidnb_magics.arguments import parse_argstring
from fluidnb_magics.display import show, width
from fluidnb_magics.session.workbench import Workbench


@magic_arguments("fluid ops")
@argument("name", nargs="?", help="an operator, or a part of names (* and ? stand for anything); all if left out")
def ops(bench: Workbench, line: str) -> None:
    """Show an operator: what it computes, slots, attributes, kernels, gradient; or list those of a name."""
    name = parse_argstring(ops, line).name
    size = width(bench.shell)
    if name and has_op(name):
        lines = sheet_lines(read_op(name), size)
    else:
        pattern = name if name and set(name) & set("*?") else f"*{name or ''}*"
        found = [d for d in all_ops() if not d.is_grad and fnmatch(d.type, pattern)]
        if not found:
            types = [d.type for d in all_ops()]
            raise NotFound(
                f"no operator is called {name}.", received=name, hint=near(name, types) or "%fluid ops lists them."
            )
        lines = list_lines(found, size)
    show(bench.shell, lines, lambda: lines_html(lines))
