"""The options ``--feed`` and ``--fetch`` of commands."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from fluidnb.program import Program, Variable
from fluidnb_magics.arguments import evaluate, pairs, variables
from fluidnb_magics.session.running import without_change
from fluidnb_magics.session.workbench import Workbench


def read_feed(bench: Workbench, args: Namespace) -> dict[str, Any]:
    """The values of ``--feed NAME=EXPR``."""
    return {name: evaluate(text, bench.shell.user_ns) for name, text in pairs(chain(*args.feed)).items()}


def read_fetches(bench: Workbench, program: Program, args: Namespace) -> list[Variable]:
    """The variables of ``--fetch NAME``."""
    return variables(chain(*args.fetch), program, bench.shell.user_ns)


@contextmanager
def runner(bench: Workbench, program: Program, args: Namespace) -> Iterator[Callable[[], Any]]:
    """A function that runs a program once with these feeds and fetches; parameters are restored at the end."""
    feed, fetches = read_feed(bench, args), read_fetches(bench, program, args)
    with without_change(bench.executor, program, feed, fetches):
        yield lambda: bench.executor.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
