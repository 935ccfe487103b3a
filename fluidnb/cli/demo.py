"""``fluidnb demo``: the demonstration in the terminal."""

from argparse import ArgumentParser, Namespace

from fluidnb.cli.checkout import start
from fluidnb.cli.command import Command
from fluidnb.extras import is_installed, missing


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--stay", action="store_true", help="keep the session open at the end")


def run(options: Namespace) -> int:
    """Run the demonstration."""
    for package in ("IPython", "sklearn"):
        if not is_installed(package):
            raise missing(package, "The command demo")
    return start("fluidnb_magics.demo", *(["--stay"] if options.stay else []))


COMMAND = Command("Train a digit classifier and a regression, in a real IPython session.", arguments, run)
