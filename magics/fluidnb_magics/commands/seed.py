"""``%fluid seed``: sets the random seed."""

from __future__ import annotations

from argparse import Namespace

from IPython.core.magic_arguments import argument

import fluidnb as fluid
from fluidnb_magics.commands import Section, command
from fluidnb_magics.session.workbench import Workbench


@command(Section.SETTINGS)
@argument("number", type=int, help="any integer")
def seed(bench: Workbench, args: Namespace) -> None:
    """Set the random seed for initializers, random operators and readers."""
    fluid.seed(args.number)
