"""``%fluid explore``: a program to look through, as it is at any moment."""

from __future__ import annotations

from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb_magics.arguments import parse_argstring, unquoted
from fluidnb_magics.session.program_parts import picture_of
from fluidnb_magics.session.workbench import Workbench


@magic_arguments("fluid explore")
@argument("what", nargs="*", help="a cell, program, block, operators 0:12-40, or an expression; the program if empty")
@argument("--startup", action="store_true", help="the startup program instead of the main one")
@argument("--program", help="a program of this session")
def explore_program(bench: Workbench, line: str) -> None:
    """Look through a program: a listing that folds, search, who writes and reads what, graphs.

    It stays as the program is: cells that run again change it, a debug session lights the operator that comes next,
    and what is selected is selected in the other widgets, too. In a terminal it is the listing of %fluid show.
    """
    args = parse_argstring(explore_program, line)
    what = unquoted(" ".join(args.what))
    if picture_of(bench, what, args.program, args.startup, 1) is None:
        return
    from fluidnb_magics.widgets.explorer import Explorer
    from fluidnb_magics.widgets.widget import show_face

    show_face(bench.shell, Explorer(bench, what, args.program, args.startup))
