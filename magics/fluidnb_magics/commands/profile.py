"""``%fluid profile``: the time of each operator."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument

from fluidnb.debug.profile import profile_steps
from fluidnb.files.atomic_write import atomic_write
from fluidnb.program import Program
from fluidnb.runtime import global_scope
from fluidnb.viz import program_html, program_lines, read_program
from fluidnb.viz.time.op_times import timed
from fluidnb.viz.time.timeline import read_timeline, timeline_lines
from fluidnb.viz.time.timeline_svg import timeline_html
from fluidnb_magics.arguments import evaluate, pairs, positive, variables
from fluidnb_magics.commands import Section, command
from fluidnb_magics.display import show, width
from fluidnb_magics.session.running import without_change
from fluidnb_magics.session.training import data_variables
from fluidnb_magics.session.workbench import Workbench


@command(Section.RUN)
@argument("--feed", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="values of data variables")
@argument("--fetch", nargs="+", action="append", default=[], metavar="NAME", help="variables fetched in each run")
@argument("--steps", type=positive, default=1, help="how often to run (1); the first run also compiles loops")
@argument("--top", type=positive, default=12, help="rows of the table at most (12)")
@argument("--listing", action="store_true", help="the program, with the time of each operator in its row")
@argument("--live", action="store_true", help="a widget to zoom in, with totals of the visible part")
@argument("--trace", metavar="FILE", help="also write a trace for chrome://tracing and Perfetto")
@argument("--program", help="a program of this session")
def profile(bench: Workbench, args: Namespace) -> None:
    """Run a program and show the time of each operator: a timeline and a table.

    Parameters are restored afterwards. Operators on a device are timed by the device's own clock. With --live the
    widget also follows later runs of this program, such as training; without --feed it shows only those.
    """
    if args.listing and args.live:
        raise UsageError("%fluid profile shows a listing or a widget: --listing or --live.")
    program = bench.existing(args.program)[0]
    if args.live and not args.feed and data_variables(program):
        from fluidnb_magics.widgets.live_widget import show_live
        from fluidnb_magics.widgets.timeline_explorer import TimelineExplorer

        show_live(bench, TimelineExplorer(bench, program))
        return
    bench.before_run(program, global_scope())  # so that initialization is not timed
    with _runner(bench, program, args) as run:
        found, runs = profile_steps(run, args.steps)
    timeline = read_timeline(found, runs)
    listing = timed(read_program(program), timeline) if args.listing else None
    if listing is None:
        lines = timeline_lines(timeline, width(bench.shell), args.top)
    else:
        lines = program_lines(listing, width(bench.shell))
    if args.trace:
        with atomic_write(args.trace, text=True) as file:
            file.write(found.chrome_trace())
        lines.append([(f"{args.trace} is for chrome://tracing and Perfetto", "dim")])
    if args.live:
        from fluidnb_magics.widgets.live_widget import show_live
        from fluidnb_magics.widgets.timeline_explorer import TimelineExplorer

        show_live(bench, TimelineExplorer(bench, program, timeline))
        return
    picture = timeline_html(timeline, "", args.top) if listing is None else program_html(listing)
    show(bench.shell, lines, lambda: picture)


@contextmanager
def _runner(bench: Workbench, program: Program, args: Any) -> Iterator[Callable[[], Any]]:
    """A function that runs once with the feeds and fetches of a line, and restores parameters."""
    names = bench.shell.user_ns
    feed = {name: evaluate(text, names) for name, text in pairs(chain(*args.feed)).items()}
    fetches = variables(chain(*args.fetch), program, names)
    with without_change(bench.executor, program, feed, fetches):
        yield lambda: bench.executor.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
