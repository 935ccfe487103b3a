"""``fluidnb diff``: the differences of two programs, of saved models or scripts."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from fluidnb.cli import programs, show
from fluidnb.cli.command import Command, number_from
from fluidnb.errors import FluidError


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    for word in ("before", "after"):
        parser.add_argument(word, metavar=word.upper(), type=Path, help="a saved model, or a Python script")
    parser.add_argument("--around", metavar="N", type=number_from(0), default=2,
                        help="operators shown before and after one that differs (2)")  # fmt: skip
    programs.script_options(parser)


def run(options: Namespace) -> int:
    """Show the differences."""
    from fluidnb.viz.program.diff import diff_lines, read_diff

    first, second = (_program(options, path) for path in (options.before, options.after))
    picture = read_diff(first, second, (str(options.before), str(options.after)))
    show.print_lines(diff_lines(picture, show.terminal_width(), options.around))
    return 0


def _program(options: Namespace, path: Path) -> Any:
    """The program of a model, or the one that a script builds."""
    found = programs.named_programs(Namespace(**vars(options) | {"what": path}))
    if len(found) > 1:
        raise FluidError(f"{path} builds several programs.", hint=f"--program {' or '.join(found)}")
    return next(iter(found.values()))


COMMAND = Command(
    "Show the differences between two models.", arguments, run,
    example="example:\n  fluidnb diff saved/inference.json converted/",
)  # fmt: skip
