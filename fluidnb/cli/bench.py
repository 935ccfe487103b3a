"""``fluidnb bench``: the benchmarks, beside other frameworks."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fluidnb.cli.checkout import root, start
from fluidnb.cli.command import Command


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("works", nargs="*", metavar="WORK", help="what to measure (default: everything)")
    parser.add_argument("--peers", metavar="NAMES", default="fluidnb", help="frameworks to compare with (%(default)s)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="history to append to (.bench/history.jsonl)")


def run(options: Namespace) -> int:
    """Measure."""
    more = ["--json", str(options.json.absolute())] if options.json else []
    return start("tests.benchmarks", *options.works, "--peers", options.peers, *more, folder=root("tests/benchmarks"))


COMMAND = Command(
    "Measure training and running, beside other frameworks if you like.", arguments, run,
    example="example:\n  fluidnb bench fit_a_line --peers fluidnb,torch\n\n"
    "`make bench` in a checkout sets the other frameworks up first.",
)  # fmt: skip
