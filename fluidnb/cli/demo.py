"""``fluidnb demo``: the demonstration in the terminal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib.util import find_spec

from fluidnb.cli.checkout import start
from fluidnb.cli.command import Command
from fluidnb.errors import FluidError


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--stay", action="store_true", help="keep the session open at the end")


def run(options: Namespace) -> int:
    """Run the demonstration."""
    if find_spec("sklearn") is None:
        raise FluidError("The demonstration needs the digits of scikit-learn.", hint="pip install 'fluidnb[data]'")
    return start("fluidnb_magics.demo", *(["--stay"] if options.stay else []))


COMMAND = Command("Train a digit classifier and a regression, in a real IPython session.", arguments, run)
