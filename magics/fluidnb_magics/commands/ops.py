"""``%fluid ops``: lists operators, or documents one."""

from __future__ import annotations

from argparse import Namespace
from fnmatch import fnmatch

from IPython.core.magic_arguments import argument

from fluidnb.errors import NotFound, near
from fluidnb.op import all_ops, has_op
from fluidnb.viz import lines_html, list_lines, read_op, sheet_lines
from fluidnb_magics.commands import Section, command
from fluidnb_magics.commands._offers import op_types
from fluidnb_magics.display import show, width
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT, op_types)
@argument("name", nargs="?", help="an operator, or a part of names (* and ? stand for anything); all if left out")
def ops(bench: Workbench, args: Namespace) -> None:
    """Document an operator (slots, attributes, kernels, gradient), or list operators by name."""
    name = args.name
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
