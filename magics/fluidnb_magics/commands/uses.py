"""``%fluid uses``: the operators that write or read a variable."""

from __future__ import annotations

from argparse import Namespace

from IPython.core.magic_arguments import argument

from fluidnb.errors import NotFound
from fluidnb.program import Variable
from fluidnb.viz import (
    lines_html,
    read_program,
    uses_lines,
    uses_of,
)
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.arguments import unquoted
from fluidnb_magics.commands import Section, command
from fluidnb_magics.commands._offers import variables
from fluidnb_magics.display import show, width
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT, variables)
@argument("name", help="a variable: its name in the program, or a Python name")
@argument("--program", help="a program of this session")
def uses(bench: Workbench, args: Namespace) -> None:
    """List the operators that write or read a variable, in both programs."""
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
