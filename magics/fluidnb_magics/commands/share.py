"""``%fluid share``: the debug session or a program as one HTML file."""

from functools import partial

from fluidnb.debug.session import current
from fluidnb.viz.saved_page.page import MAX_BYTES, save_html
from fluidnb_magics.arguments import positive, size, unquoted
from fluidnb_magics.commands._command import (
    Namespace,
    Section,
    Workbench,
    argument,
    command,
    program_option,
    show,
    startup_option,
)
from fluidnb_magics.commands._offers import cells
from fluidnb_magics.session.program_parts import picture_of


@command(Section.DEBUG, "share session.html", cells)
@argument("file", help="path of the file")
@argument("what", nargs="*", help="a cell, program, block, or expression instead of the session")
@startup_option()
@program_option()
@argument("--last", type=positive, metavar="N", help="steps at most, the last ones; all that are recorded if left out")
@argument("--max-size", type=size, metavar="SIZE", default=MAX_BYTES, help="such as 500kB; of a session's file (2MB)")
def share(bench: Workbench, args: Namespace) -> None:
    """Write the debug session as one HTML file: no network, no kernel.

    A reader steps through it forwards and backwards, opens tensors, folds and searches the program, and follows the
    writers and readers of variables. Without a session, or if a program is named, the file has the program alone.
    Large tensors are thinned to fit: their statistics are of all elements. The size is printed before the file is
    written.
    """
    what = unquoted(" ".join(args.what))
    session = None if what or args.program or args.startup else current()
    thing = session or picture_of(bench, what, args.program, args.startup)
    if thing is not None:
        report = partial(_report, bench)
        save_html(thing, unquoted(args.file), args.last, args.max_size, report=report)


def _report(bench: Workbench, sentence: str) -> None:
    show(bench.shell, [[(sentence, "")]])
