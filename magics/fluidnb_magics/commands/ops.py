"""``%fluid ops``: lists operators, documents one, or shows those that a layer appends."""

from fnmatch import fnmatch

import numpy as np

import fluidnb as fluid
from fluidnb.builder import recipes
from fluidnb.builder.layer_ops import layer_ops
from fluidnb.builder.recipes import Recipe
from fluidnb.errors import NotFound, near
from fluidnb.op import all_ops, has_op
from fluidnb.viz import list_lines, read_op, sheet_lines
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show, width
from fluidnb_magics.commands._offers import op_types


@command(Section.INSPECT, "ops *conv*", op_types)
@argument("name", nargs="?", help="an operator, a layer, or a part of names (* and ? stand for anything)")
def ops(bench: Workbench, args: Namespace) -> None:
    """Document an operator (slots, attributes, kernels, gradient), or list operators by name.

    The name of a layer shows the operators that it appends: ``%fluid ops fc``.
    """
    name, size = args.name, width(bench.shell)
    if name and has_op(name):
        show(bench.shell, sheet_lines(read_op(name), size))
        return
    layers = [recipe for recipe in recipes() if recipe.group == "layer"] if name else []
    lines = [line for recipe in layers if recipe.name == name for line in _layer_lines(recipe)]
    pattern = name if name and set(name) & set("*?") else f"*{name or ''}*"
    found = [d for d in all_ops() if not d.is_grad and fnmatch(d.type, pattern)]
    if not found and not lines:
        known = [*(d.type for d in all_ops()), *(recipe.name for recipe in layers)]
        hint = near(name, known) or "%fluid ops lists them."
        raise NotFound(f"no operator or layer is called {name}.", received=name, hint=hint)
    show(bench.shell, [*lines, *(list_lines(found, size) if found else [])])


def _layer_lines(recipe: Recipe) -> list[Line]:
    """The usage of a layer, and the operators that its example appends."""
    tried = layer_ops(recipe, {"fluid": fluid, "layers": fluid.layers, "np": np})
    lines: list[Line] = [[(f"layers.{recipe.usage}", "bold")], [(f"  {recipe.summary}", "")]]
    if tried is None:
        return lines
    kinds = ", ".join(tried.types) or "no operator"
    lines += [[("  appends ", "dim"), (kinds, "forward"), (", in its example:", "dim")]]
    lines += [[(f"    {row}", "")] for row in tried.source.splitlines()]
    if tried.types:
        lines.append([(f"  %fluid ops {tried.types[0]} documents an operator", "dim")])
    return lines
