"""``%fluid plan``: the compiled program of the last run."""

from fluidnb.viz.program.compiled_text import compiled_lines
from fluidnb_magics.commands._command import Namespace, Section, Workbench, command, program_option, show


@command(Section.INSPECT, "plan")
@program_option()
def plan(bench: Workbench, args: Namespace) -> None:
    """Show the compiled program of the last run, with its transforms.

    For each operator: the device, and the copies, casts and layout conversions around its kernel. Nothing runs.
    """
    show(bench.shell, compiled_lines(bench.existing(args.program)[0]))
