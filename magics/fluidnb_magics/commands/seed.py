"""``%fluid seed``: sets the random seed."""

import fluidnb as fluid
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command


@command(Section.SESSION, "seed 7")
@argument("number", type=int, help="any integer")
def seed(bench: Workbench, args: Namespace) -> None:
    """Set the random seed for initializers, random operators and readers."""
    fluid.seed(args.number)
