"""Definition of a subcommand of ``fluidnb``."""

from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """One word of ``fluidnb``."""

    summary: str  # what it does, one line
    arguments: Callable[[ArgumentParser], None]  # declares its arguments
    run: Callable[[Namespace], int]  # does it; returns the exit status. Errors are FluidErrors
    rest: str = ""  # what arguments that it does not know are for, when it hands them on; they come as ``options.rest``
    example: str = ""  # lines for the end of its help


def number_from(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number from ``least`` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ArgumentTypeError(f"{text} is not a number from {least} on")
        return int(text)

    return read


def script_options(parser: ArgumentParser) -> None:
    """Declare the arguments that name a script, without the script's own."""
    parser.add_argument("--force", action="store_true", help="run even if PaddlePaddle is installed")
    parser.add_argument("--seed", type=int, help="fix everything random, as fluidnb.seed(SEED) does")
    parser.add_argument("script", metavar="SCRIPT", type=Path)


def script_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments that name a script and run it; all that follows is the script's."""
    script_options(parser)
    rest = parser.add_argument("arguments", metavar="ARGS", nargs=REMAINDER, help="what the script finds in sys.argv")
    rest.required = False  # or a missing script is reported as two missing things
