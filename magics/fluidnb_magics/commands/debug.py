"""``%fluid debug``: starts a debug session."""

from functools import partial

from fluidnb.debug.flow import gradient_flow
from fluidnb.debug.session import Session, current, post_mortem
from fluidnb.runtime import global_scope
from fluidnb.runtime.interpreter.failed_run import last_failed
from fluidnb.terminal.commands import view
from fluidnb.terminal.prompt import Prompt
from fluidnb.viz.session.html import session_html
from fluidnb.viz.session.text import flow_lines
from fluidnb_magics.commands._command import (
    Namespace,
    Section,
    Workbench,
    argument,
    command,
    feed_option,
    fetch_option,
    program_option,
    show,
    startup_option,
    width,
)
from fluidnb_magics.commands._feeds import read_feed, read_fetches
from fluidnb_magics.commands._offers import global_variables
from fluidnb_magics.commands.panel import show_panel


@command(Section.DEBUG, "debug --feed x=X y=Y --fetch loss", global_variables)
@argument("what", nargs="?", choices=("on", "off", "flow"), help="see above; starts a session if left out")
@feed_option()
@fetch_option("variables wanted at the end")
@startup_option("the startup program")
@program_option()
@argument("--prompt", action="store_true", help="a prompt in this terminal or cell")
@argument("--panel", action="store_true", help="show the panel of the session, see %%fluid panel")
def debug(bench: Workbench, args: Namespace) -> None:
    """Step through a program, forwards and backwards.

    With --feed, --fetch or --program a run begins, paused at its first operator; without, a run that failed is replayed
    up to the operator that failed. ``on`` makes later runs stop at breakpoints, ``off`` ends the session, ``flow``
    shows the gradient of each parameter.
    """
    names = bench.shell.user_ns
    program = bench.existing(args.program)[args.startup]
    feed = read_feed(bench, args)
    session = current()
    if args.what == "flow":
        show(bench.shell, flow_lines(gradient_flow(program, feed, place=bench.place), width(bench.shell)))
        return
    if args.what == "off":
        text = "no debug session" if session is None else "the debug session has ended; runs do not stop any more"
        if session is not None:
            session.close()
        show(bench.shell, [[(text, "")]])
        return
    waits = args.what == "on"  # for runs of the program
    is_run = args.feed or args.fetch or args.program or args.startup or (session is None and last_failed() is None)
    fetches = read_fetches(bench, program, args) or None if is_run else None
    if is_run and not waits:  # what is refused leaves the session as it is
        bench.executor.prepare(program, feed, fetches, global_scope())
    replays = last_failed() is not None and (session is None or session.snapshot.state in ("idle", "done"))
    if session is not None and (waits or is_run or replays):
        session.close()
    if waits:
        session = Session(program).__enter__()
    elif is_run:
        session = Session(program, feed, fetches, place=bench.place)
    elif session is None or replays:
        session = post_mortem()
    bench.session = session
    session.around = names
    if args.prompt:
        Prompt(session).cmdloop()
    elif args.panel:
        show_panel(bench, session)
    else:
        show(bench.shell, view(session, width(bench.shell)), partial(session_html, session))
