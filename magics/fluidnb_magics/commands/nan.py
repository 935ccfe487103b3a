"""``%fluid nan``: finds the first NaN or infinity."""

from IPython.core.error import UsageError

from fluidnb.debug.nan import find_nan, search_nan
from fluidnb.debug.session import current
from fluidnb.memory import flags
from fluidnb.terminal.commands import view
from fluidnb.viz import lines_html
from fluidnb.viz.session.html import session_html
from fluidnb.viz.session.text import finding_lines
from fluidnb_magics.commands._command import Namespace, Section, argument, command, feed_option, program_option
from fluidnb_magics.commands._feeds import read_feed
from fluidnb_magics.commands._offers import global_variables
from fluidnb_magics.display import show, width
from fluidnb_magics.session.workbench import Workbench


@command(Section.DEBUG, "nan --feed x=X y=Y", lambda bench, words: ["on", "off", *global_variables(bench, words)])
@argument("what", nargs="?", help="on, off, or the largest absolute value allowed; default any finite one")
@feed_option()
@program_option()
def nan(bench: Workbench, args: Namespace) -> None:
    """Find the first operator that writes NaN or infinity.

    It checks the rest of the run of the debug session, otherwise a run with --feed. ``on`` checks every later run, at
    little cost; ``off`` ends that.
    """
    if args.what in ("on", "off"):
        flags.set_flags({"FLAGS_check_nan_inf": args.what == "on"})
        text = "every run stops at the first operator that writes NaN or infinity" if args.what == "on" else (
            "runs do not check for NaN and infinity"
        )
        show(bench.shell, [[(text, "")]])
        return
    session = current()
    if session is not None and not args.feed and session.snapshot.state != "idle":
        finding = session.do(search_nan, args.what or "")
        lines = finding_lines(finding)
        html = lines_html(lines) + session_html(session)
        show(bench.shell, [*lines, *view(session, width(bench.shell))], lambda: html)
        return
    try:
        limit = float(args.what) if args.what else None
    except ValueError:
        raise UsageError(f"%fluid nan takes on, off or a number, not {args.what}.") from None
    program = bench.existing(args.program)[0]
    finding = find_nan(program, read_feed(bench, args), limit=limit, place=bench.place)
    show(bench.shell, finding_lines(finding))
