"""``%fluid``: all commands."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from fluidnb.errors import near
from fluidnb.extras import PACKAGES, missing
from fluidnb_magics.cell_errors import shorten
from fluidnb_magics.commands import COMMANDS
from fluidnb_magics.session.workbench import Workbench

_QUESTION = re.compile(r"^(\s*%fluid)\s+([\w-]+)\s*\?+\s*?(\n?)$")


@magics_class
class FluidLines(Magics):
    """The line magic."""

    shell: Any  # the IPython shell

    def __init__(self, shell: Any, bench: Workbench) -> None:
        super().__init__(shell)
        self._bench = bench

    @line_magic
    def fluid(self, line: str) -> Any:
        """Runs a command on the programs of this session: ``%fluid WORD ...``.

        ``%fluid`` alone lists the commands, ``%fluid help WORD``, ``%fluid WORD --help`` or ``%fluid WORD?`` describes
        one.
        """
        word, _, rest = line.strip().partition(" ")
        if word == "help" and rest.strip():
            word, rest = rest.strip(), "--help"
        if word in ("", "--help", "-h", "help"):
            print(overview() + "\n" + self.shell.find_cell_magic("fluid").__doc__)
            return None
        command = COMMANDS.get(word)
        if command is None:
            raise UsageError(f"%fluid has no {word}. {near(word, COMMANDS) or 'It has ' + ', '.join(COMMANDS)}")
        if rest.strip() in ("--help", "-h"):
            print(cleandoc(command.help).removeprefix("::\n"))  # reST, for pages of documentation
            return None
        try:
            return command.run(self._bench, rest)
        except UsageError:
            raise
        except ModuleNotFoundError as error:
            if error.name not in PACKAGES:
                raise
            raise shorten(self.shell, missing(error.name, f"%fluid {word}")) from None
        except BaseException as error:
            raise shorten(self.shell, error) from None

    fluid.__doc__ = f"{cleandoc(fluid.__doc__ or '')}\n\nCommands: {', '.join(COMMANDS)}."


def question_as_help(lines: list[str]) -> list[str]:
    """Input transformer: ``%fluid WORD?`` is ``%fluid help WORD``; IPython would look for a Python name WORD."""
    return [_QUESTION.sub(r"\1 help \2\3", line) for line in lines]


def overview() -> str:
    """All commands under their headings, as text."""
    cells = [
        ("%%fluid [NAME]", "Builds a part of the program."), ("%%kernel OP", "Defines a kernel."),
        ("%%op OP", "Defines an operator."),
    ]  # fmt: skip
    groups = {"Cells": cells}
    for section, commands in COMMANDS.by_section().items():
        groups[section.value] = [(f"%fluid {c.word}", first_sentence(c.help)) for c in commands]
    wide = max(len(name) for rows in groups.values() for name, _ in rows)
    return "\n\n".join(
        "\n".join([title, *(f"  {name:<{wide}}  {text}" for name, text in rows)]) for title, rows in groups.items()
    )


def first_sentence(doc: str) -> str:
    """The sentence of a command's help that follows its usage."""
    text = next((p for p in doc.split("\n\n") if p.strip() and not p.lstrip().startswith(("::", "%"))), "")
    return " ".join(text.split()).split(". ")[0].rstrip(".") + "."
