"""``%fluid run``: runs a program."""

from typing import Any

from fluidnb_magics.arguments import positive
from fluidnb_magics.commands._command import (
    Namespace,
    Section,
    Workbench,
    argument,
    command,
    feed_option,
    fetch_option,
    program_option,
    startup_option,
)
from fluidnb_magics.commands._feeds import read_feed, read_fetches
from fluidnb_magics.commands._offers import global_variables
from fluidnb_magics.session import running


@command(Section.RUN, "run --feed x=X y=Y --fetch loss", global_variables)
@feed_option()
@fetch_option("variables whose values are shown")
@argument("--steps", type=positive, default=1, help="how often to run (1)")
@argument("--keep", action="store_true", help="keep the scopes of the run; %%fluid scope shows them")
@startup_option("run the startup program: initializes all parameters again")
@program_option()
def run(bench: Workbench, args: Namespace) -> Any:
    """Run a program and show the fetched values; uninitialized parameters are initialized first."""
    main = bench.existing(args.program)[args.startup]
    feed, fetches = read_feed(bench, args), read_fetches(bench, main, args)
    fetched = running.run_steps(bench.executor, main, feed, fetches, args.steps, args.keep)
    return fetched if fetches else None
