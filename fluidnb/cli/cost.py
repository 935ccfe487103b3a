"""``fluidnb cost``: multiply-adds and bytes of a program, by operator, layer or cell."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fluidnb.cli import programs, show
from fluidnb.cli.command import Command, number_from
from fluidnb.files.atomic_write import atomic_write


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    programs.add_arguments(parser)
    parser.add_argument("--by", choices=("op", "layer", "cell", "role"), default="op", help="what is summed up (op)")
    parser.add_argument("--batch", metavar="N", type=number_from(1), default=1, help="rows of every data variable (1)")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write the table as HTML instead")


def run(options: Namespace) -> int:
    """Show the costs of programs."""
    from fluidnb.program.cost import batch_shapes, program_cost
    from fluidnb.viz import lines_html
    from fluidnb.viz.program.cost import cost_lines

    tables = []
    for title, program in programs.named_programs(options).items():
        cost = program_cost(program, batch_shapes(program, options.batch))
        tables.append(cost_lines(cost, options.by, title))
    if options.html is not None:
        with atomic_write(options.html, text=True) as out:
            out.write("\n".join(lines_html(lines) for lines in tables) + "\n")
        print(options.html)
        return 0
    for i, lines in enumerate(tables):
        show.print_lines([[("", "")]] * (i > 0) + lines)
    return 0


COMMAND = Command(
    "Show multiply-adds and bytes of a model, or of what a script builds.", arguments, run,
    example="examples:\n  fluidnb cost saved/ --batch 32      by operator type\n"
    "  fluidnb cost train.py --by layer    by layer, with backward and optimizer",
)  # fmt: skip
