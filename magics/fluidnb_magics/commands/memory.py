"""``%fluid memory``: the memory of a program's last run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument

from fluidnb.program import Program
from fluidnb.viz.memory.growth import Growth, growth_html, growth_lines
from fluidnb.viz.memory.html import memory_html
from fluidnb.viz.memory.reader import read_memory
from fluidnb.viz.memory.text import memory_lines
from fluidnb_magics.arguments import evaluate, pairs, positive, variables
from fluidnb_magics.commands import Section, command
from fluidnb_magics.display import show, width
from fluidnb_magics.session.running import without_change
from fluidnb_magics.session.workbench import Workbench


@command(Section.RUN)
@argument("--growth", type=positive, metavar="N", help="run N steps and show whether memory grows")
@argument("--feed", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="values for these steps")
@argument("--fetch", nargs="+", action="append", default=[], metavar="NAME", help="variables fetched in these steps")
@argument("--top", type=positive, default=8, help="rows of a table at most (8)")
@argument("--live", action="store_true", help="a widget that follows what runs")
@argument("--program", help="a program of this session")
def memory(bench: Workbench, args: Namespace) -> None:
    """Draw the memory of a program's last run: buffers by lifetime, and the peak.

    Memory outside the run is listed with its owner. Nothing runs, except with --growth.
    """
    program = bench.existing(args.program)[0]
    if args.growth:
        growth = Growth(place=bench.place)
        with _runner(bench, program, args) as run:
            for _ in range(args.growth):
                run()
                growth.add()
        picture = growth.picture()
        show(bench.shell, growth_lines(picture, width(bench.shell), args.top), lambda: growth_html(picture))
        return
    if args.feed or args.fetch:
        raise UsageError("%fluid memory runs nothing: --feed and --fetch are for --growth N.")
    if args.live:
        from fluidnb_magics.widgets.live_widget import show_live
        from fluidnb_magics.widgets.memory_explorer import MemoryExplorer

        show_live(bench, MemoryExplorer(bench, program))
        return
    held = read_memory(program)
    show(bench.shell, memory_lines(held, width(bench.shell), args.top), lambda: memory_html(held))


@contextmanager
def _runner(bench: Workbench, program: Program, args: Any) -> Iterator[Callable[[], Any]]:
    """A function that runs once with the feeds and fetches of a line, and restores parameters."""
    names = bench.shell.user_ns
    feed = {name: evaluate(text, names) for name, text in pairs(chain(*args.feed)).items()}
    fetches = variables(chain(*args.fetch), program, names)
    with without_change(bench.executor, program, feed, fetches):
        yield lambda: bench.executor.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
