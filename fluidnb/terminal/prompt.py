"""The ``(fluid)`` prompt: a debug session in a plain terminal, or wherever `input` works."""

import cmd
import shutil
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from fluidnb.debug.session import Session, Stopped
from fluidnb.distributed.attachment import role_keys, running
from fluidnb.errors import FluidError
from fluidnb.op import all_ops
from fluidnb.program import hooks
from fluidnb.terminal.commands import COMMANDS, command_of, run_command, view
from fluidnb.viz.base.styled_text import Line, ansi, plain


class Prompt(cmd.Cmd):
    """Reads and executes commands, until the session continues without it.

    An empty line repeats the last command. Tab completes commands, operators and variables.
    """

    prompt = "(fluid) "

    def __init__(self, session: Session, stdin: Any = None, stdout: Any = None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.session = session
        self.left = False

    def preloop(self) -> None:
        """Show the current position."""
        self.show(view(self.session, self._width()))

    def onecmd(self, line: str) -> bool:
        """Execute a line; an empty one repeats the last."""
        line = line.strip() or self.lastcmd
        if not line:
            return False
        self.lastcmd = "" if line == "EOF" else line
        if line.split()[0] in ("help", "h", "?"):
            self.show(help_lines(line.partition(" ")[2].strip(), self._width()))
            return False
        return self._execute(line)

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        """Commands that begin with a text."""
        return [name for name in (*COMMANDS, "help", "detach", "quit") if name.startswith(text)]

    def completedefault(self, *args: Any) -> list[str]:
        """Arguments of a command that begin with a text."""
        text, line = args[0], args[1]
        command = command_of(line.split()[0])
        offers = "" if command is None else command.offers
        words = self.session.names() if offers == "vars" else [d.type for d in all_ops()] if offers == "ops" else []
        if offers == "roles" and running:
            words = list(role_keys(running[-1].plan))
        return [word for word in words if word.startswith(text)]

    def show(self, lines: list[Line]) -> None:
        """Write lines, in a terminal with colours."""
        width = self._width()
        self.stdout.write((ansi(lines, width) if width else plain(lines)) + "\n")
        self.stdout.flush()

    def _execute(self, line: str) -> bool:
        """Execute a command; whether the prompt is over. An error is shown and changes nothing."""
        if line in ("EOF", "q", "quit", "exit"):
            self.left = True
            return True
        if line == "detach":
            if self.session.role is not None:
                self.session.role.leave()
            else:
                self.session.clear()
            return True
        try:
            self.show(run_command(self.session, line, self._width()))
        except FluidError as error:
            if error.op is None:
                error.where = None  # the line would be that of the run, which has nothing to do with it
            self.show([[(row, "warn")] for row in str(error).splitlines()])
        except Exception as error:
            self.show([[(f"{type(error).__name__}: {error}", "warn")]])
        return self.session.snapshot.state == "done" and command_of(line.split()[0]) is COMMANDS["continue"]

    def _width(self) -> int:
        return shutil.get_terminal_size().columns if self.stdout.isatty() else 0


def prompt(session: Session) -> None:
    """Run the prompt of a paused run; ``quit`` leaves it paused."""
    dialog = Prompt(session)
    dialog.cmdloop()
    if dialog.left and session.snapshot.state != "done":
        raise Stopped("The run was left paused.", received=session.snapshot.text)


def help_lines(word: str = "", width: int = 0) -> list[Line]:
    """The list of commands, or the help of one."""
    command = command_of(word) if word else None
    if command is not None:
        head = f"{command.name} {command.usage}".rstrip()
        return [[(head, "bold")], [("  " + command.help, "")], [(f"  example: {command.example}", "dim")]]
    shorts = [f"  ({', '.join(c.short)})" if c.short else "" for c in COMMANDS.values()]
    names = [f"{c.name} {c.usage}".rstrip() + short for c, short in zip(COMMANDS.values(), shorts, strict=True)]
    names += ["detach", "quit  (q)"]
    helps = [c.help for c in COMMANDS.values()]
    helps += ["Remove all breakpoints and run to the end.", "Leave the run paused."]
    wide = max(map(len, names)) + 2
    lines: list[Line] = []
    for name, text in zip(names, helps, strict=True):
        rows = textwrap.wrap(text, max(width - wide, 20)) if width else [text]
        lines.append([(f"{name:<{wide}}", "name"), (rows[0], "")])
        lines += [[(" " * wide + row, "")] for row in rows[1:]]
    return lines


def available_prompt() -> Callable[[Session], None] | None:
    """`prompt` where it can read input, in a terminal or a notebook; None elsewhere."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        return prompt if getattr(kernel, "_allow_stdin", False) else None
    return prompt if sys.stdin is not None and sys.stdin.isatty() else None


hooks.debug_prompt = available_prompt
