"""``%fluid show``: draws a program."""

import re
from functools import partial

from fluidnb.cli.picture_files import HELP, chosen_files
from fluidnb.errors import NotFound, near
from fluidnb.viz import card_lines, program_html, program_lines, select
from fluidnb.viz.program.exports import export
from fluidnb.viz.program.svg import file_svg
from fluidnb_magics.arguments import positive, unquoted
from fluidnb_magics.commands._command import Namespace, Section, argument, command, program_option, startup_option
from fluidnb_magics.commands._offers import cells
from fluidnb_magics.display import show as display
from fluidnb_magics.display import width
from fluidnb_magics.session.program_parts import picture_of
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT, "show --search mul", cells)
@argument("what", nargs="*", help="a cell, program, block, operator 0:12, or an expression; the program if empty")
@startup_option()
@program_option()
@argument("--search", action="append", default=[], metavar="WORDS", help="operators that match; see above")
@argument("--role", action="append", default=[], help="forward, backward, optimizer; several with commas")
@argument("--fold", action="append", default=[], help="blocks, cells, layers: a row for each; several with commas")
@argument("--text", action="store_true", help="as text, also in a notebook")
@argument("--svg", metavar="FILE", help=HELP["svg"])
@argument("--png", metavar="FILE", help=HELP["png"])
@argument("--pdf", metavar="FILE", help=HELP["pdf"])
@argument("--dot", metavar="FILE", help=HELP["dot"])
@argument("--mermaid", metavar="FILE", help=HELP["mermaid"])
@argument("--limit", type=positive, metavar="N", default=400, help="operators shown at most (400)")
def show(bench: Workbench, args: Namespace) -> None:
    """Draw a program: nested blocks, roles by colour, the cell and line of every operator.

    --search takes parts of operator types, variables, attribute=value and cells. A word with * or ? must match as a
    whole; the prefixes op: var: attr: cell: choose the field ("var:fc_0.* cell:net" must match both). An index
    BLOCK:OPERATOR (%fluid show 0:12) shows one operator with its documentation and kernels.
    """
    search = " ".join(unquoted(text) for text in args.search)
    chosen = bool(search or args.role or args.fold)
    files = chosen_files(args)
    limit = 0 if chosen or files else args.limit
    picture = picture_of(bench, unquoted(" ".join(args.what)), args.program, args.startup, limit)
    if picture is None:
        return
    if re.fullmatch(r"\d+:\d+", "".join(args.what)) and not files:
        display(bench.shell, card_lines(picture.root.ops[0], width(bench.shell)))
        return
    part = select(picture, search, args.role, args.fold)
    if chosen and not part.size:
        words = {w for op in picture.each() for w in (op.type, *(v.name for v in (*op.reads, *op.writes)))}
        request = " ".join([search, *args.role]).strip()
        raise NotFound("no operator matches.", received=request, hint=near(search, words) or "%fluid show --help")
    for kind, file in files.items():
        display(bench.shell, [[(line, "")] for line in export(part, kind, unquoted(file), args.limit).splitlines()])
    if not files:
        lines = program_lines(part, width(bench.shell), args.limit)
        html, svg = partial(program_html, part, limit=args.limit), partial(file_svg, part, limit=args.limit)
        display(bench.shell, lines, *((None, None) if args.text else (html, None if part.is_folded else svg)))
