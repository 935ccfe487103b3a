"""The commands of a debug session (``step``, ``break``, ``print`` …) as words of ``%fluid``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from fluidnb.debug.breakpoints import AFTER, BEFORE
from fluidnb.debug.session import current
from fluidnb.errors import NotFound
from fluidnb.op import all_ops
from fluidnb.terminal.commands import COMMANDS as TERMINAL_COMMANDS
from fluidnb.terminal.commands import Command as TerminalCommand
from fluidnb.terminal.commands import run_command
from fluidnb.viz.session.html import session_html
from fluidnb_magics.commands._command import Command, Section
from fluidnb_magics.display import show, width
from fluidnb_magics.session.workbench import Workbench

#: The commands whose output is the position, with the number of operators shown before and after it.
_SHOW_POSITION = {
    **dict.fromkeys(("step", "next", "out", "continue", "until", "back", "rnext", "rcontinue", "restart", "goto"), 3),
    **dict.fromkeys(("who", "change"), 3),
    "where": 12,
}


def _command(terminal: TerminalCommand) -> Command:
    def run(bench: Workbench, line: str) -> None:
        session = current()
        if session is None:
            raise NotFound(
                "There is no debug session.",
                hint="%fluid debug --feed x=... starts one; %fluid debug on waits for runs.",
            )
        lines = run_command(session, f"{terminal.name} {line}", width(bench.shell))
        around = _SHOW_POSITION.get(terminal.name)
        show(bench.shell, lines, None if around is None else partial(session_html, session, around))

    usage = f"%fluid {terminal.name} {terminal.usage}".rstrip()
    help = f"::\n\n  {usage}\n\n{terminal.help}\n"
    return Command(terminal.name, Section.DEBUG, help, run, terminal.example, offers=partial(_offered, terminal))


def _offered(terminal: TerminalCommand, bench: Workbench, words: list[str]) -> Iterable[str]:
    session = current()
    if session is not None and terminal.name in ("break", "until") and words[-1:] == ["var"]:
        return dict.fromkeys(n for b in session.program.desc.blocks for n in b.vars)
    kinds = (*BEFORE, *AFTER) if terminal.name == "break" else ()
    if session is None or session.snapshot.state == "idle":
        return kinds
    names = session.names() if terminal.offers == "vars" else [d.type for d in all_ops()] if terminal.offers else []
    return [*kinds, *names]


#: word -> command
STEP_COMMANDS: dict[str, Command] = {word: _command(each) for word, each in TERMINAL_COMMANDS.items()}
