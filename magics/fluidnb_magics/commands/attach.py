"""``%fluid attach``: a debug session in a role of the training that runs."""

from collections.abc import Iterable
from functools import partial

from fluidnb.debug.session import Session, current
from fluidnb.distributed.attachment import attach as attach_session
from fluidnb.distributed.attachment import newest_engine, role_keys, running
from fluidnb.terminal.commands import view
from fluidnb.terminal.prompt import Prompt
from fluidnb.viz.session.html import session_html
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show, width
from fluidnb_magics.commands.panel import show_panel


def _roles(bench: Workbench, words: list[str]) -> Iterable[str]:
    """The roles of the training that runs."""
    return role_keys(running[-1].plan) if running else ()


@command(Section.DEBUG, "attach trainer0", _roles)
@argument("role", help="trainer0, pserver1, ...; %%fluid roles draws them")
@argument("--prompt", action="store_true", help="a prompt in this terminal or cell")
@argument("--panel", action="store_true", help="show the panel of the session, see %%fluid panel")
def attach(bench: Workbench, args: Namespace) -> None:
    """Go into a trainer or a parameter server of the training that runs in the background.

    It stops at the first operator of its next run: a trainer's step, or a server's wait for gradients, from where
    ``%fluid step`` enters the update. The other roles wait for it. ``%fluid debug off`` lets it run on; another
    ``attach`` goes to another role.
    """
    engine = newest_engine()
    session = current()
    if session is None or session.role is None:
        if session is not None:
            session.close()
        session = bench.session = Session(engine.plan.program)
        session.around = bench.shell.user_ns
    attach_session(session, args.role)
    if args.prompt:
        Prompt(session).cmdloop()
    elif args.panel:
        show_panel(bench, session)
    else:
        show(bench.shell, view(session, width(bench.shell)), partial(session_html, session))
