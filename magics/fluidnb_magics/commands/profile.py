"""``%fluid profile``: the time of each operator."""

from argparse import Namespace

from IPython.core.error import UsageError

from fluidnb.data.feeder import data_variables
from fluidnb.debug.profile import profile_steps
from fluidnb.files.atomic_write import atomic_write
from fluidnb.program import Program
from fluidnb.runtime import global_scope
from fluidnb.viz import program_html, program_lines, read_program
from fluidnb.viz.base.display_target import Terminal, find_display_target
from fluidnb.viz.time.timeline import Timeline, read_timeline, timed, timeline_lines
from fluidnb.viz.time.timeline_svg import timeline_html
from fluidnb_magics.arguments import positive
from fluidnb_magics.commands._command import Section, argument, command, feed_option, fetch_option, program_option
from fluidnb_magics.commands._feeds import runner
from fluidnb_magics.display import show, show_widget, width
from fluidnb_magics.session.live_profile import LiveProfile
from fluidnb_magics.session.workbench import Workbench


@command(Section.RUN, "profile --feed x=X y=Y --steps 3")
@feed_option()
@fetch_option("variables fetched in each run")
@argument("--steps", type=positive, default=1, help="how often to run (1); the first run also compiles loops")
@argument("--top", type=positive, default=12, help="rows of the table at most (12)")
@argument("--listing", action="store_true", help="the program, with the time of each operator in its row")
@argument("--live", action="store_true", help="a widget to zoom in, with totals of the visible part")
@argument("--trace", metavar="FILE", help="also write a trace for chrome://tracing and Perfetto")
@program_option()
def profile(bench: Workbench, args: Namespace) -> None:
    """Run a program and show the time of each operator: a timeline and a table.

    Parameters are restored afterwards. Operators on a device are timed by the device's own clock. With --live the
    widget also follows later runs of this program, such as training; without --feed it shows only those. A terminal
    shows a line each second while the program runs, and the table after the cell, until --live is given again.
    """
    if args.listing and args.live:
        raise UsageError("%fluid profile shows a listing or a widget: --listing or --live.")
    program = bench.existing(args.program)[0]
    if args.live and not args.feed and data_variables(program):
        _show_live(bench, program, None)
        return
    bench.before_run(program, global_scope())  # so that initialization is not timed
    with runner(bench, program, args) as run:
        events, runs = profile_steps(run, args.steps)
    timeline = read_timeline(events, runs)
    listing = timed(read_program(program), timeline) if args.listing else None
    if listing is None:
        lines = timeline_lines(timeline, width(bench.shell), args.top)
    else:
        lines = program_lines(listing, width(bench.shell))
    if args.trace:
        with atomic_write(args.trace, text=True) as file:
            file.write(events.chrome_trace())
        lines.append([(f"{args.trace} is for chrome://tracing and Perfetto", "dim")])
    if args.live:
        _show_live(bench, program, timeline)
        return
    picture = timeline_html(timeline, "", args.top) if listing is None else program_html(listing)
    show(bench.shell, lines, lambda: picture)


def _show_live(bench: Workbench, program: Program, timeline: Timeline | None) -> None:
    target = find_display_target()
    if isinstance(target, Terminal):
        _follow(bench, program, timeline, target)
        return
    from fluidnb_magics.widgets.timeline_explorer import TimelineExplorer

    show_widget(bench.shell, TimelineExplorer(bench, program, timeline))


def _follow(bench: Workbench, program: Program, timeline: Timeline | None, target: Terminal) -> None:
    """Follow later runs in a terminal, or stop following them."""
    before = [widget for widget in bench.widgets if isinstance(widget, LiveProfile)]
    for each in before:
        each.close()
    if timeline is not None:
        show(bench.shell, timeline_lines(timeline, width(bench.shell)))
    elif any(each.program() is program for each in before):
        show(bench.shell, [[("runs are not profiled any more", "dim")]])
        return
    LiveProfile(bench, program, target)
    show(bench.shell, [[("later runs are profiled; %fluid profile --live again ends it", "dim")]])
