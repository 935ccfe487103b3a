"""``%fluid``: all commands."""

import re
from inspect import cleandoc
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from fluidnb.errors import NotFed, near
from fluidnb.extras import PACKAGES, missing
from fluidnb_magics.arguments import options_of
from fluidnb_magics.cell_errors import shorten
from fluidnb_magics.commands import COMMANDS
from fluidnb_magics.commands._alike import beside
from fluidnb_magics.commands._command import Command, Section
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
            print(overview())
            return None
        command = COMMANDS.get(word)
        if command is None:
            raise UsageError(f"%fluid has no {word}. {near(word, COMMANDS) or 'It has ' + ', '.join(COMMANDS)}")
        if rest.strip() in ("--help", "-h"):
            print(described(command))
            return None
        try:
            return command.run(self._bench, rest)
        except UsageError:
            raise
        except NotFed as error:
            if command.parser is not None and "--feed" in options_of(command.parser):
                feed = " ".join(f"{name}=..." for name in error.names)
                # --feed comes last, for it takes all words behind it
                error.hint = " ".join(filter(None, ["%fluid", word, rest.strip(), "--feed", feed]))
            raise shorten(self.shell, error) from None
        except ModuleNotFoundError as error:
            if error.name not in PACKAGES:
                raise
            raise shorten(self.shell, missing(error.name, f"%fluid {word}")) from None
        except BaseException as error:
            raise shorten(self.shell, error) from None

    fluid.__doc__ = (
        f"{cleandoc(fluid.__doc__ or '')}\n\nCommands: {', '.join(COMMANDS.files)}; and those of a debug session, as "
        "step, back, continue, break and print."
    )


def question_as_help(lines: list[str]) -> list[str]:
    """Input transformer: ``%fluid WORD?`` is ``%fluid help WORD``; IPython would look for a Python name WORD."""
    return [_QUESTION.sub(r"\1 help \2\3", line) for line in lines]


def overview() -> str:
    """All commands under their headings, each with an example, as text."""
    rows: dict[Section, list[tuple[str, str]]] = {section: [] for section in Section}
    rows[Section.BUILD].append(("%%fluid net", "Build a part of a program in a cell."))
    rows[Section.KERNELS].append(("%%kernel relu", "Write a kernel in a cell."))
    rows[Section.KERNELS].append(("%%op cube", "Write an operator in a cell."))
    for section, commands in COMMANDS.by_section().items():
        rows[section] += [(f"%fluid {c.example}", first_sentence(c.help)) for c in commands]
    wide = max(len(example) for group in rows.values() for example, _ in group)
    groups = [
        "\n".join([section.value, *(f"  {example:<{wide}}  {text}" for example, text in group)])
        for section, group in rows.items()
    ]
    groups.append("%fluid help WORD or %fluid WORD? describes one with its options; %%fluid? describes the cell.")
    return "\n\n".join(groups)


def described(command: Command) -> str:
    """The help of a command: usage, options, an example, and similar commands."""
    usage = cleandoc(command.help).removeprefix("::\n").replace("``", "").rstrip()  # reST, for pages of documentation
    return "\n\n".join(filter(None, [usage, f"example:\n  %fluid {command.example}", beside(command.word)])) + "\n"


def first_sentence(doc: str) -> str:
    """The sentence of a command's help that follows its usage."""
    text = next((p for p in doc.split("\n\n") if p.strip() and not p.lstrip().startswith(("::", "%"))), "")
    return " ".join(text.replace("``", "").split()).split(". ")[0].rstrip(".") + "."
