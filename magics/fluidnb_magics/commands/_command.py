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
from fluidnb_magics.arguments import options_of, parse_argstring
from fluidnb_magics.display import show, show_widget, width
from fluidnb_magics.session.workbench import Workbench

__all__ = [
    "Command", "Namespace", "Offers", "Section", "UsageError", "Workbench", "argument", "choices_of", "command",
    "feed_option", "fetch_option", "program_option", "show", "show_widget", "startup_option", "width", "words_of",
]  # fmt: skip

#: ``offers(bench, words)``: the words that may follow ``%fluid WORD words``.
Offers = Callable[[Workbench, list[str]], Iterable[str]]


class Section(Enum):
    """The headings of ``%fluid --help``, in their order."""

    BUILD = "Build"
    INSPECT = "Inspect"
    RUN = "Run"
    DEBUG = "Debug"
    KERNELS = "Kernels"
    SESSION = "Session"


@dataclass(frozen=True)
class Command:
    """A word of ``%fluid``."""

    word: str
    section: Section  # its heading in the help
    help: str  # its full help, usage first
    run: Callable[[Workbench, str], Any]  # called with the workbench and the rest of the line
    example: str  # a line, without ``%fluid``
    parser: ArgumentParser | None = None  # the parser of its options; None where the command splits the line itself
    offers: Offers = lambda bench, words: ()  # what the Tab key offers beside its options


def words_of(parser: ArgumentParser) -> list[str]:
    """The long options of a parser, then the fixed words of its other arguments."""
    actions = parser._actions  # argparse has no public list of a parser's arguments
    return options_of(parser) + [word for a in actions if not a.option_strings for word in a.choices or () if word]


def choices_of(parser: ArgumentParser, option: str) -> list[str]:
    """The fixed words that may follow an option; empty where there are none."""
    return [word for action in parser._actions if option in action.option_strings for word in action.choices or ()]


#: The words of this package whose files are imported; the words that cells and other modules define.
loaded: dict[str, Command] = {}
defined: dict[str, Command] = {}


def program_option(about: str = "a program of this session") -> Callable[[Any], Any]:
    """The option ``--program``."""
    return argument("--program", metavar="NAME", help=about)


def startup_option(about: str = "the startup program instead of the main one") -> Callable[[Any], Any]:
    """The option ``--startup``."""
    return argument("--startup", action="store_true", help=about)


def feed_option(about: str = "values of data variables") -> Callable[[Any], Any]:
    """The option ``--feed``."""
    return argument("--feed", nargs="+", action="append", default=[], metavar="NAME=EXPR", help=about)


def fetch_option(about: str) -> Callable[[Any], Any]:
    """The option ``--fetch``."""
    return argument("--fetch", nargs="+", action="append", default=[], metavar="NAME", help=about)


def command(
    section: Section, example: str, offers: Offers | None = None, raw: bool = False
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

        table[word] = Command(word, section, act.__doc__ or "", run, example, parser, offers or Command.offers)
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
