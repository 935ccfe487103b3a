"""The command line: which word, its arguments, and errors as a few lines."""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence

from fluidnb.cli import (
    bench,
    check_op,
    compile,
    convert,
    cost,
    debug,
    demo,
    diff,
    lab,
    new,
    run,
    show,
    summary,
    test,
    train,
    version,
)
from fluidnb.cli.command import Command
from fluidnb.errors import FluidError, near

#: word -> what it does
COMMANDS: dict[str, Command] = {
    "show": show.COMMAND,
    "cost": cost.COMMAND,
    "summary": summary.COMMAND,
    "diff": diff.COMMAND,
    "compile": compile.COMMAND,
    "convert": convert.COMMAND,
    "run": run.COMMAND,
    "train": train.COMMAND,
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
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may come next
        import argcomplete

        argcomplete.autocomplete(parser)
    if not words:
        parser.print_help()
        return 0
    word = words[0]
    if not word.startswith("-") and word not in COMMANDS:
        parser.error(f"there is no {word}. {near(word, COMMANDS) or 'There is ' + ', '.join(COMMANDS) + '.'}")
    options, rest = parser.parse_known_args(words)
    command = COMMANDS[options.word]
    if rest and not command.rest:
        hint = near(rest[0], options.known) or f"It has {', '.join(options.known)}."
        parser.error(f"{word} does not take {' '.join(rest)}. {hint}")
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
        formatter_class=RawDescriptionHelpFormatter,
        epilog="fluidnb COMMAND --help describes one of them.\n\n"
        "Tab completes words, options and files in bash and zsh: pip install argcomplete,\n"
        'then put into ~/.bashrc or ~/.zshrc:  eval "$(register-python-argcomplete fluidnb)"',
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
        sub.set_defaults(known=[name for a in sub._actions for name in a.option_strings if name.startswith("--")])
    return parser
