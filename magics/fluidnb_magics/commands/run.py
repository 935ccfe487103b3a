"""``%fluid run`` and ``%fluid train``: running programs."""

from __future__ import annotations

from itertools import chain
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from fluidnb.viz import Gradients, gradient_lines, gradients_html
from fluidnb_magics import running
from fluidnb_magics.expressions import evaluate, pairs, positive, unquoted, variables
from fluidnb_magics.showing import show, width
from fluidnb_magics.workbench import Workbench


@magic_arguments("fluid run")
@argument("--feed", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="values of data variables")
@argument("--fetch", nargs="+", action="append", default=[], metavar="NAME", help="variables whose values are shown")
@argument("--steps", type=positive, default=1, help="how often to run (1)")
@argument("--keep", action="store_true", help="keep the scopes of the run; %%fluid scope shows them")
@argument("--startup", action="store_true", help="run the startup program: all parameters start over")
@argument("--program", help="a program of this session")
def run(bench: Workbench, line: str) -> Any:
    """Run a program and show the fetched values; parameters without a value get their first one."""
    args = parse_argstring(run, line)
    names = bench.shell.user_ns
    main = bench.existing(args.program)[args.startup]
    feed = {name: evaluate(text, names) for name, text in pairs(chain(*args.feed)).items()}
    fetches = variables(chain(*args.fetch), main, names)
    fetched = running.run_steps(bench.executor, main, feed, fetches, args.steps, args.keep)
    return fetched if fetches else None


@magic_arguments("fluid train")
@argument("reader", nargs="+", help="an expression: a reader of batches, or of samples with --batch")
@argument("--passes", type=positive, default=1, help="how often to go through the reader (1)")
@argument("--batch", type=positive, help="samples to a batch, for a reader of samples")
@argument("--watch", nargs="+", action="append", default=[], metavar="NAME", help="variables to draw while training")
@argument("--feed", nargs="+", action="append", default=[], metavar="NAME", help="what a sample has fields for")
@argument("--gradients", action="store_true", help="show gradients and updates of all parameters at the end")
@argument("--program", help="a program of this session")
def train(bench: Workbench, line: str) -> None:
    """Run a program on the batches of a reader: bar, rate, time left, a live plot of watched variables."""
    args = parse_argstring(train, line)
    names = bench.shell.user_ns
    main, _ = bench.existing(args.program)
    text = unquoted(" ".join(args.reader))
    reader = evaluate(text, names)
    if not callable(reader) and not hasattr(reader, "__iter__"):
        raise UsageError(f"{text} is no reader: a function that gives batches.")
    if args.batch:
        from fluidnb.data import batch

        reader = batch(reader, args.batch)
    feed = variables(chain(*args.feed), main, names) if args.feed else None
    gradients = Gradients(main) if args.gradients else None
    watch = variables(chain(*args.watch), main, names)
    running.train(bench.executor, main, reader, watch, args.passes, feed, gradients)
    if gradients is not None:
        picture = gradients.picture()
        show(bench.shell, gradient_lines(picture, width(bench.shell)), lambda: gradients_html(picture))
