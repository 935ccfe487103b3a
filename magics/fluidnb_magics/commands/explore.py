"""``%fluid graph``, ``tree``, ``uses``: how data flows, how blocks nest, who writes and who reads."""

from __future__ import annotations

from importlib.util import find_spec

from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.errors import NotFound
from fluidnb.program import Variable
from fluidnb.viz import (
    graph_html,
    graph_lines,
    level,
    lines_html,
    read_program,
    tree_lines,
    uses_lines,
    uses_of,
)
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.arguments import parse_argstring, positive, unquoted
from fluidnb_magics.display import is_watched, show, width
from fluidnb_magics.session.block_tree import named_tree
from fluidnb_magics.session.program_parts import picture_of
from fluidnb_magics.session.workbench import Workbench


@magic_arguments("fluid graph")
@argument("what", nargs="*", help="a cell, a program, a block, or operators as 0:12-40; the program if empty")
@argument("--startup", action="store_true", help="the startup program instead of the main one")
@argument("--program", help="a program of this session")
@argument("--seconds", type=positive, default=20, help="how long Graphviz may lay it out (20)")
def graph(bench: Workbench, line: str) -> None:
    """Draw how data flows between operators: blocks as boxes, 300 nodes at most, with the rest folded by layer.

    A fold says which operators it stands for; ``%fluid graph 0:12-40`` opens it. In a notebook it is the graph of
    %fluid explore: a click opens a fold, an operator or a weight; the wheel zooms, dragging moves. Graphviz lays it out
    where there is one; Ctrl-C, or Interrupt, gives that up, and a listing takes its place.
    """
    args = parse_argstring(graph, line)
    what = unquoted(" ".join(args.what))
    picture = picture_of(bench, what, args.program, args.startup)
    if picture is None:
        return
    if is_watched(bench.shell) and find_spec("anywidget") is not None:
        from fluidnb_magics.widgets.explorer import Explorer
        from fluidnb_magics.widgets.widget import show_face

        show_face(bench.shell, Explorer(bench, what, args.program, args.startup, graph=True))
        return
    shown = level(picture)
    hint = "%fluid graph BLOCK:FIRST-LAST opens a part" if shown != picture else ""
    lines = graph_lines(shown, width(bench.shell))
    show(bench.shell, [*lines, *([[(hint, "dim")]] if hint else [])], lambda: graph_html(shown, hint, args.seconds))


@magic_arguments("fluid tree")
@argument("--startup", action="store_true", help="the startup program instead of the main one")
@argument("--program", help="a program of this session")
def tree(bench: Workbench, line: str) -> None:
    """Show the tree of a program's blocks, with how many operators of each role they hold."""
    args = parse_argstring(tree, line)
    program = bench.existing(args.program)[args.startup]
    show(bench.shell, tree_lines(named_tree(bench, program), width(bench.shell), roles=True))


@magic_arguments("fluid uses")
@argument("name", help="a variable: its name in the program, or a Python name")
@argument("--program", help="a program of this session")
def uses(bench: Workbench, line: str) -> None:
    """Tell who writes a variable and who reads it: block, operator, cell, line; in the startup program too."""
    args = parse_argstring(uses, line)
    main, startup = bench.existing(args.program)
    thing = bench.shell.user_ns.get(args.name)
    name = thing.name if isinstance(thing, Variable) else unquoted(args.name)
    size = width(bench.shell)
    refused: NotFound | None = None
    lines: list[Line] = []
    for title, program in (("program", main), ("startup program", startup)):
        try:
            found = uses_lines(uses_of(read_program(program), name), size)
        except NotFound as error:
            refused = refused or error
            continue
        lines += [[(title, "bold")], *found]
    if refused is not None and not lines:
        raise refused
    show(bench.shell, lines, lambda: lines_html(lines))
