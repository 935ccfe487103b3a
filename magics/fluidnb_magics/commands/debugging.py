"""``%fluid debug`` and its like: stepping through programs, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.debug.flow import gradient_flow
from fluidnb.debug.nan import find_nan, search_nan
from fluidnb.debug.session import Session, current, post_mortem
from fluidnb.errors import NotFound
from fluidnb.memory import flags
from fluidnb.runtime.interpreter.failed_run import last_failed
from fluidnb.terminal.commands import COMMANDS as STEPS
from fluidnb.terminal.commands import Command, run_command, view
from fluidnb.terminal.prompt import Prompt
from fluidnb.viz import lines_html
from fluidnb.viz.session.html import session_html
from fluidnb.viz.session.text import finding_lines, flow_lines
from fluidnb_magics.arguments import evaluate, pairs, parse_argstring, variables
from fluidnb_magics.commands.panels import show_panel
from fluidnb_magics.display import show, width
from fluidnb_magics.session.workbench import Workbench

#: The session's commands that are ``%fluid`` commands too; the others mean something else there.
WORDS = (
    "step", "next", "out", "continue", "until", "back", "rnext", "rcontinue", "who", "restart", "goto", "break",
    "clear", "watch", "unwatch", "where", "print", "names", "history", "edit", "change",
)  # fmt: skip

#: Those of them that show the current position, and the number of operators around it.
STANDS = {**dict.fromkeys(WORDS[:11], 3), "change": 3, "where": 12}


@magic_arguments("fluid debug")
@argument("what", nargs="?", choices=("on", "off", "prompt", "flow"), help="see above; nothing begins a session")
@argument("--feed", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="values of data variables")
@argument("--fetch", nargs="+", action="append", default=[], metavar="NAME", help="variables wanted at the end")
@argument("--startup", action="store_true", help="the startup program")
@argument("--program", help="a program of this session")
@argument("--panel", action="store_true", help="show the panel of the session, see %%fluid panel")
def debug(bench: Workbench, line: str) -> None:
    """Step through a program, forwards and backwards.

    With --feed, --fetch or --program a run begins, paused at its first operator; without, a run that failed is replayed
    up to the operator that failed. ``on`` lets runs stop at breakpoints from now on, ``off`` ends it; ``prompt`` asks
    in a loop; ``flow`` shows the gradient of each parameter.
    """
    args = parse_argstring(debug, line)
    names = bench.shell.user_ns
    program = bench.existing(args.program)[args.startup]
    feed = {name: evaluate(text, names) for name, text in pairs(chain(*args.feed)).items()}
    session = current()
    if args.what == "flow":
        show(bench.shell, flow_lines(gradient_flow(program, feed, place=bench.place), width(bench.shell)))
        return
    if args.what == "off":
        if session is not None:
            session.close()
        return
    if args.what == "on":
        _end(session)
        session = Session(program).__enter__()
    elif args.feed or args.fetch or args.program or args.startup or (session is None and last_failed() is None):
        _end(session)
        session = Session(program, feed, variables(chain(*args.fetch), program, names) or None, place=bench.place)
    elif session is None or (last_failed() is not None and session.snapshot.state in ("idle", "done")):
        _end(session)
        session = post_mortem()
    bench.session = session
    session.around = names
    if args.what == "prompt":
        Prompt(session).cmdloop()
    elif args.panel:
        show_panel(bench, session)
    else:
        show(bench.shell, view(session, width(bench.shell)), partial(session_html, session))


@magic_arguments("fluid nan")
@argument("what", nargs="?", help="on, off, or the largest absolute value allowed; default any finite one")
@argument("--feed", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="values of data variables")
@argument("--program", help="a program of this session")
def nan(bench: Workbench, line: str) -> None:
    """Find the first operator that writes NaN or infinity; ``on`` checks every run, at little cost.

    In a debug session the rest of its run is searched, else a run with --feed.
    """
    args = parse_argstring(nan, line)
    if args.what in ("on", "off"):
        flags.set_flags({"FLAGS_check_nan_inf": args.what == "on"})
        return
    session = current()
    if session is not None and not args.feed and session.snapshot.state != "idle":
        finding = session.do(search_nan, args.what or "")
        lines = finding_lines(finding)
        html = lines_html(lines) + session_html(session)
        show(bench.shell, [*lines, *view(session, width(bench.shell))], lambda: html)
        return
    feed = {name: evaluate(text, bench.shell.user_ns) for name, text in pairs(chain(*args.feed)).items()}
    try:
        limit = float(args.what) if args.what else None
    except ValueError:
        raise UsageError(f"%fluid nan takes on, off or a number, not {args.what}.") from None
    show(bench.shell, finding_lines(find_nan(bench.existing(args.program)[0], feed, limit=limit, place=bench.place)))


def _end(session: Session | None) -> None:
    if session is not None:
        session.close()


def _word(command: Command) -> Callable[[Workbench, str], None]:
    """A command of the session as a ``%fluid`` command."""

    def act(bench: Workbench, line: str) -> None:
        session = current()
        if session is None:
            raise NotFound(
                "There is no debug session.",
                hint="%fluid debug --feed x=... begins one; %fluid debug on waits for runs.",
            )
        lines = run_command(session, f"{command.name} {line}", width(bench.shell))
        around = STANDS.get(command.name)
        show(bench.shell, lines, None if around is None else partial(session_html, session, around))

    act.__name__ = command.name
    act.__doc__ = f"::\n\n  %fluid {command.name} {command.usage}".rstrip() + f"\n\n{command.help}\n"
    return act


#: word -> command
SESSION_COMMANDS: dict[str, Callable[[Workbench, str], Any]] = {word: _word(STEPS[word]) for word in WORDS}
