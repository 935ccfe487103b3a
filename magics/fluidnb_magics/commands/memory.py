"""``%fluid memory``: the memory of a program's last run."""

from argparse import Namespace

from IPython.core.error import UsageError

from fluidnb.viz.memory.growth import Growth, growth_html, growth_lines
from fluidnb.viz.memory.reader import read_memory
from fluidnb.viz.memory.svg import memory_html
from fluidnb.viz.memory.text import memory_lines
from fluidnb_magics.arguments import positive
from fluidnb_magics.commands._command import Section, argument, command, feed_option, fetch_option, program_option
from fluidnb_magics.commands._feeds import runner
from fluidnb_magics.display import show, show_widget, width
from fluidnb_magics.session.workbench import Workbench


@command(Section.RUN, "memory --growth 5 --feed x=X y=Y")
@argument("--growth", type=positive, metavar="N", help="run N steps and show whether memory grows")
@feed_option("values for these steps")
@fetch_option("variables fetched in these steps")
@argument("--top", type=positive, default=8, help="rows of a table at most (8)")
@argument("--live", action="store_true", help="a widget that follows what runs")
@program_option()
def memory(bench: Workbench, args: Namespace) -> None:
    """Draw the memory of a program's last run: buffers by lifetime, and the peak.

    Memory outside the run is listed with its owner. Nothing runs, except with --growth.
    """
    program = bench.existing(args.program)[0]
    if args.growth:
        growth = Growth(place=bench.place)
        with runner(bench, program, args) as run:
            for _ in range(args.growth):
                run()
                growth.add()
        picture = growth.picture()
        show(bench.shell, growth_lines(picture, width(bench.shell), args.top), lambda: growth_html(picture))
        return
    if args.feed or args.fetch:
        raise UsageError("%fluid memory runs nothing: --feed and --fetch are for --growth N.")
    if args.live:
        from fluidnb_magics.widgets.memory_explorer import MemoryExplorer

        show_widget(bench.shell, MemoryExplorer(bench, program))
        return
    model = read_memory(program)
    show(bench.shell, memory_lines(model, width(bench.shell), args.top), lambda: memory_html(model))
