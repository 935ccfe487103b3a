"""The commands of ``%fluid``: one file a word, imported when the word is first used.

``%fluid diff`` is ``commands/diff.py``. There is no list to edit: a new file here is a new command, with its help, its
place in ``%fluid --help`` and its options at the Tab key. Files whose name begins with ``_`` are not commands.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from IPython.core.magic_arguments import magic_arguments

from fluidnb_magics.arguments import parse_argstring
from fluidnb_magics.session.workbench import Workbench

#: ``offers(bench, words)``: the words that may follow ``%fluid WORD words``.
Offers = Callable[[Workbench, list[str]], Iterable[str]]


class Section(Enum):
    """The headings of ``%fluid --help``, in their order."""

    BUILD = "Build a program"
    INSPECT = "Inspect it"
    RUN = "Run, train and measure"
    DEBUG = "Debug"
    SETTINGS = "Settings"
    LEARN = "Learn"


@dataclass(frozen=True)
class Command:
    """A word of ``%fluid``.

    Args:
        word: the word.
        section: its heading in the help.
        help: its full help, usage first.
        run: called with the workbench and the rest of the line.
        parser: the parser of its options; None where the command splits the line itself.
        offers: what the Tab key offers beside its options.
    """

    word: str
    section: Section
    help: str
    run: Callable[[Workbench, str], Any]
    parser: ArgumentParser | None = None
    offers: Offers = lambda bench, words: ()


def options_of(parser: ArgumentParser) -> list[str]:
    """The long options of a parser, then the fixed words of its other arguments.

    Args:
        parser: the parser.

    Example:
        >>> options_of(COMMANDS["compat"].parser)
        ['--force', 'on', 'off']
    """
    actions = parser._actions  # argparse has no public list of a parser's arguments
    options = [option for action in actions for option in action.option_strings if option.startswith("--")]
    return options + [word for a in actions if not a.option_strings for word in a.choices or () if word]


_loaded: dict[str, Command] = {}


def command(
    section: Section, offers: Offers | None = None, raw: bool = False
) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function the command that its file is named after.

    Args:
        section: its heading in the help.
        offers: what the Tab key offers beside its options.
        raw: whether the function takes the rest of the line as a string, and writes its usage into its docstring;
            otherwise it takes the arguments that its ``@argument`` decorators declare, as a namespace.

    Returns:
        A decorator of ``function(bench, args)``.
    """

    def decorate(act: Callable[..., Any]) -> Command:
        word = act.__module__.rpartition(".")[2]
        if raw:
            run, parser = act, None
        else:
            parsed = magic_arguments(f"fluid {word}")(act)
            parser = parsed.parser

            def run(bench: Workbench, line: str) -> Any:
                return act(bench, parse_argstring(parsed, line))

        made = Command(word, section, act.__doc__ or "", run, parser, offers or Command.offers)
        _loaded[word] = made
        return made

    return decorate


class CommandTable(Mapping[str, Command]):
    """Word -> command; a command's file is imported when it is looked up.

    Example:
        >>> COMMANDS["diff"].section
        <Section.INSPECT: 'Inspect it'>
    """

    def __init__(self) -> None:
        self._files = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))

    def __getitem__(self, word: str) -> Command:
        if word in self._files:
            import_module(f"fluidnb_magics.commands.{word}")
            return _loaded[word]
        return self._steps()[word]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._files, *(word for word in self._steps() if word not in self._files)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def by_section(self) -> dict[Section, list[Command]]:
        """All commands under the headings of the help."""
        commands = list(self.values())
        return {section: [c for c in commands if c.section is section] for section in Section}

    def _steps(self) -> Mapping[str, Command]:
        """The commands of a debug session: import of the debugger is put off until one is looked up."""
        from fluidnb_magics.commands._steps import STEP_COMMANDS

        return STEP_COMMANDS


COMMANDS = CommandTable()

__all__ = ["COMMANDS", "Command", "CommandTable", "Section", "command", "options_of"]
