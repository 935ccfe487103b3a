"""``%fluid ops``: lists operators, or documents one."""

from __future__ import annotations

from fnmatch import fnmatch

from fluidnb.errors import NotFound, near
from fluidnb.op import all_ops, has_op
from fluidnb.viz import list_lines, read_op, sheet_lines
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show, width
from fluidnb_magics.commands._offers import op_types


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
        ops = [d for d in all_ops() if not d.is_grad and fnmatch(d.type, pattern)]
        if not ops:
            hint = near(name, [d.type for d in all_ops()]) or "%fluid ops lists them."
            raise NotFound(f"no operator is called {name}.", received=name, hint=hint)
        lines = list_lines(ops, size)
    show(bench.shell, lines)
