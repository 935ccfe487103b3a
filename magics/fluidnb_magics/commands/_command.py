"""A command of ``%fluid``, the decorator that makes one, and what every command needs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.errors import OpValueError
from fluidnb_magics.arguments import parse_argstring
from fluidnb_magics.display import show, show_widget, width
from fluidnb_magics.session.workbench import Workbench

__all__ = [
    "Command", "Namespace", "Offers", "Section", "UsageError", "Workbench", "argument", "command", "options_of", "show",
    "show_widget", "width",
]  # fmt: skip

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
    """A word of ``%fluid``."""

    word: str
    section: Section  # its heading in the help
    help: str  # its full help, usage first
    run: Callable[[Workbench, str], Any]  # called with the workbench and the rest of the line
    parser: ArgumentParser | None = None  # the parser of its options; None where the command splits the line itself
    offers: Offers = lambda bench, words: ()  # what the Tab key offers beside its options


def options_of(parser: ArgumentParser) -> list[str]:
    """The long options of a parser, then the fixed words of its other arguments."""
    actions = parser._actions  # argparse has no public list of a parser's arguments
    options = [option for action in actions for option in action.option_strings if option.startswith("--")]
    return options + [word for a in actions if not a.option_strings for word in a.choices or () if word]


#: The words of this package whose files are imported; the words that cells and other modules define.
loaded: dict[str, Command] = {}
defined: dict[str, Command] = {}


def command(
    section: Section, offers: Offers | None = None, raw: bool = False
) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function a command; a ``raw`` one gets the rest of the line.

    In this package its word is the name of its file, in a cell or another module the name of the function.

    Raises:
        OpValueError: a function outside this package has the name of one of its commands.
    """

    def decorate(act: Callable[..., Any]) -> Command:
        package, _, word = act.__module__.rpartition(".")
        table = loaded
        if package != __package__:
            word, table = act.__name__, defined
            _check_free(word)
        if raw:
            run, parser = act, None
        else:
            parsed = magic_arguments(f"fluid {word}")(act)
            parser = parsed.parser

            def run(bench: Workbench, line: str) -> Any:
                return act(bench, parse_argstring(parsed, line))

        table[word] = Command(word, section, act.__doc__ or "", run, parser, offers or Command.offers)
        return table[word]

    return decorate


def _check_free(word: str) -> None:
    """Raises where the package has a command."""
    from fluidnb_magics.commands import COMMANDS

    if word in COMMANDS and word not in defined:
        raise OpValueError(
            f"%fluid {word} exists.", expected="a name that is no command of fluidnb", received=word,
            hint="give the function another name; %fluid lists the commands.",
        )  # fmt: skip
