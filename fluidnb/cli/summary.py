"""``fluidnb summary``: parameters, multiply-adds and activation memory of a program, by layer, operator or block."""

from argparse import ArgumentParser, Namespace

from fluidnb.cli import programs, show
from fluidnb.cli.command import Command, number_from


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    programs.add_arguments(parser)
    parser.add_argument("--by", choices=("layer", "op", "block"), default="layer", help="what is summed up (layer)")
    parser.add_argument("--depth", metavar="N", type=number_from(1), help="layers in layers at most (all)")
    parser.add_argument("--batch", metavar="N", type=number_from(1), default=1, help="rows of every data variable (1)")


def run(options: Namespace) -> int:
    """Show the summaries of programs."""
    from fluidnb.program.cost import batch_shapes
    from fluidnb.viz.program.cost import summary_table_lines

    for i, (title, program) in enumerate(programs.named_programs(options).items()):
        summary = program.summary(options.by, batch_shapes(program, options.batch), options.depth)
        show.print_lines([[("", "")]] * (i > 0) + summary_table_lines(summary, title))
    programs.print_processing(options)
    return 0


COMMAND = Command(
    "Summarize a model, or what a script builds, layer by layer.", arguments, run,
    example="examples:\n  fluidnb summary saved/ --depth 2    parameters and multiply-adds by layer\n"
    "  fluidnb summary saved/ --by op      by operator type",
)  # fmt: skip
