"""``%fluid memory`` and ``%fluid profile``: where the bytes and the time of a program go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.debug.profile import profile_steps
from fluidnb.files.atomic_write import atomic_write
from fluidnb.program import Program
from fluidnb.runtime import global_scope
from fluidnb.viz import program_html, program_lines, read_program
from fluidnb.viz.memory.growth import Growth, growth_html, growth_lines
from fluidnb.viz.memory.html import memory_html
from fluidnb.viz.memory.reader import read_memory
from fluidnb.viz.memory.text import memory_lines
from fluidnb.viz.time.op_times import timed
from fluidnb.viz.time.timeline import read_timeline, timeline_lines
from fluidnb.viz.time.timeline_svg import timeline_html
from fluidnb_magics.arguments import evaluate, pairs, parse_argstring, positive, variables
from fluidnb_magics.display import show, width
from fluidnb_magics.session.running import without_change
from fluidnb_magics.session.training import data_variables
from fluidnb_magics.session.workbench import Workbench


@magic_arguments("fluid memory")
@argument("--growth", type=positive, metavar="N", help="run N steps and show whether memory grows")
@argument("--feed", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="values for these steps")
@argument("--fetch", nargs="+", action="append", default=[], metavar="NAME", help="variables fetched in these steps")
@argument("--top", type=positive, default=8, help="rows of a table at most (8)")
@argument("--live", action="store_true", help="a widget that follows what runs")
@argument("--program", help="a program of this session")
def memory(bench: Workbench, line: str) -> None:
    """Draw the memory of a program's last run: what lies where and when, the peak, who holds the rest.

    Nothing runs, except with --growth.
    """
    args = parse_argstring(memory, line)
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


@magic_arguments("fluid profile")
@argument("--feed", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="values of data variables")
@argument("--fetch", nargs="+", action="append", default=[], metavar="NAME", help="variables fetched in each run")
@argument("--steps", type=positive, default=1, help="how often to run (1); the first run binds loops, too")
@argument("--top", type=positive, default=12, help="rows of the table at most (12)")
@argument("--listing", action="store_true", help="the program, with the time of each operator in its row")
@argument("--live", action="store_true", help="a widget to zoom in, with sums of what is in view")
@argument("--trace", metavar="FILE", help="also write a trace for chrome://tracing and Perfetto")
@argument("--program", help="a program of this session")
def profile(bench: Workbench, line: str) -> None:
    """Run a program and show where the time goes: a timeline of its operators, and a table.

    Parameters are afterwards as before. What runs on a device is timed by the device's own clock: its rows are device
    time. With --live the runs of this program that follow are shown, too, while they train; without --feed only those.
    """
    args = parse_argstring(profile, line)
    if args.listing and args.live:
        raise UsageError("%fluid profile shows a listing or a widget: --listing or --live.")
    program = bench.existing(args.program)[0]
    if args.live and not args.feed and data_variables(program):
        from fluidnb_magics.widgets.live_widget import show_live
        from fluidnb_magics.widgets.timeline_explorer import TimelineExplorer

        show_live(bench, TimelineExplorer(bench, program))
        return
    bench.before_run(program, global_scope())  # first values are no part of it
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
    """What makes one run with the feed and the fetches of a line; parameters are afterwards as before."""
    names = bench.shell.user_ns
    feed = {name: evaluate(text, names) for name, text in pairs(chain(*args.feed)).items()}
    fetches = variables(chain(*args.fetch), program, names)
    with without_change(bench.executor, program, feed, fetches):
        yield lambda: bench.executor.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
