"""The command line: which word, its arguments, and errors as a few lines."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence

from fluidnb.cli import bench, check_op, cost, debug, demo, lab, new, run, show, test, version
from fluidnb.cli.command import Command
from fluidnb.errors import FluidError, near

#: word -> what it does
COMMANDS: dict[str, Command] = {
    "show": show.COMMAND,
    "cost": cost.COMMAND,
    "run": run.COMMAND,
    "debug": debug.COMMAND,
    "test": test.COMMAND,
    "demo": demo.COMMAND,
    "lab": lab.COMMAND,
    "new": new.COMMAND,
    "check-op": check_op.COMMAND,
    "bench": bench.COMMAND,
    "version": version.COMMAND,
}
#: What a shell reports of a program that Ctrl-C, or a reader that went away, has ended.
INTERRUPTED, PIPE_CLOSED = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status: 0, or 1 after an error, which is printed on stderr."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = make_parser()
    if not words:
        parser.print_help()
        return 0
    word = words[0]
    if not word.startswith("-") and word not in COMMANDS:
        parser.error(f"there is no {word}. {near(word, COMMANDS) or 'There is ' + ', '.join(COMMANDS) + '.'}")
    options, rest = parser.parse_known_args(words)
    command = COMMANDS[options.word]
    if rest and not command.rest:
        parser.error(f"{word} does not know {' '.join(rest)}; fluidnb {word} --help lists its options.")
    options.rest = rest
    try:
        status = command.run(options)
        sys.stdout.flush()
        return status
    except FluidError as error:
        error.where = None  # no line of the user's: a word of the command line
        print(f"fluidnb {word}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # as in `fluidnb show model | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED


def make_parser() -> ArgumentParser:
    """The parser of the whole command line."""
    parser = ArgumentParser(
        prog="fluidnb", description="PaddlePaddle Fluid as a notebook instrument, from the command line.",
        epilog="fluidnb COMMAND --help describes one of them.",
    )  # fmt: skip
    words = parser.add_subparsers(dest="word", metavar="COMMAND", required=True)
    for word, command in COMMANDS.items():
        rest = f"\n\nAnything else goes to {command.rest}." if command.rest else ""
        example = f"\n\n{command.example}" if command.example else ""
        sub = words.add_parser(
            word, help=command.summary, description=command.summary + rest, epilog=example.strip() or None,
            formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False,
        )  # fmt: skip
        command.arguments(sub)
    return parser
