"""``%fluid uses``: the operators that write or read a variable."""

from fluidnb.errors import NotFound
from fluidnb.program import Variable
from fluidnb.viz import read_program, uses_lines, uses_of
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.arguments import unquoted
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, program_option
from fluidnb_magics.commands._offers import variables
from fluidnb_magics.display import show, width


@command(Section.INSPECT, "uses h", variables)
@argument("name", help="a variable: its name in the program, or a Python name")
@program_option()
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
            lines += [[(title, "bold")], *uses_lines(uses_of(read_program(program), name), size)]
        except NotFound as error:
            refused = refused or error
    if refused is not None and not lines:
        raise refused
    show(bench.shell, lines)
