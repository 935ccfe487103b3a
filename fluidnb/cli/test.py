"""``fluidnb test``: the tests of the checkout, in ctest's spelling."""

from argparse import ArgumentParser, Namespace

from fluidnb.cli.checkout import root, start
from fluidnb.cli.command import Command
from fluidnb.extras import is_installed, missing


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("-R", metavar="NAME", help="only tests whose name has this in it (a regular expression)")
    parser.add_argument("-V", action="store_true", help="verbose: one line for each test, with its output")
    parser.add_argument("-N", action="store_true", help="list test names only")
    parser.add_argument("-j", metavar="N", help="so many tests at a time (default: 1; logical: one for each core)")
    parser.add_argument("--full", action="store_true", help="large sets of cases whole, not sampled")


def run(options: Namespace) -> int:
    """Run tests.

    Returns:
        pytest's exit status: 0 when all passed, 5 when there was none.
    """
    folder = root("tests")
    if not is_installed("pytest"):
        raise missing("pytest", "The command test")
    arguments = [*(["-R", options.R] if options.R else []), *(["-v", "-s"] if options.V else [])]
    arguments += ["--collect-only", "-q"] if options.N else []
    arguments += [*(["-n", options.j] if options.j else []), *(["--full"] if options.full else [])]
    return start("pytest", *arguments, *options.rest, folder=folder)


COMMAND = Command(
    "Run the tests of the checkout.", arguments, run, "pytest",
    "examples:\n  fluidnb test -R test_mul_op -V\n  fluidnb test -R 'test_(mul|fc)' -x\n  fluidnb test -j logical",
)  # fmt: skip
