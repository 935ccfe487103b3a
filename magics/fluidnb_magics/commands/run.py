"""``%fluid run``: runs a program."""

from __future__ import annotations

from argparse import Namespace
from itertools import chain
from typing import Any

from IPython.core.magic_arguments import argument

from fluidnb_magics.arguments import evaluate, pairs, positive, variables
from fluidnb_magics.commands import Section, command
from fluidnb_magics.commands._offers import global_variables
from fluidnb_magics.session import running
from fluidnb_magics.session.workbench import Workbench


@command(Section.RUN, global_variables)
@argument("--feed", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="values of data variables")
@argument("--fetch", nargs="+", action="append", default=[], metavar="NAME", help="variables whose values are shown")
@argument("--steps", type=positive, default=1, help="how often to run (1)")
@argument("--keep", action="store_true", help="keep the scopes of the run; %%fluid scope shows them")
@argument("--startup", action="store_true", help="run the startup program: initializes all parameters again")
@argument("--program", help="a program of this session")
def run(bench: Workbench, args: Namespace) -> Any:
    """Run a program and show the fetched values; uninitialized parameters are initialized first."""
    names = bench.shell.user_ns
    main = bench.existing(args.program)[args.startup]
    feed = {name: evaluate(text, names) for name, text in pairs(chain(*args.feed)).items()}
    fetches = variables(chain(*args.fetch), main, names)
    fetched = running.run_steps(bench.executor, main, feed, fetches, args.steps, args.keep)
    return fetched if fetches else None
