"""``%fluid programs``: the programs of the session."""

from fluidnb.viz import read_program
from fluidnb.viz.base.styled_text import plural
from fluidnb_magics.commands._command import Namespace, Section, Workbench, command, show


@command(Section.SESSION, "programs")
def programs(bench: Workbench, args: Namespace) -> None:
    """List the programs of this session; ``%%fluid --program NAME`` makes one."""
    rows = []
    for name, (main, startup) in bench.programs.items():
        counts = f"  {read_program(main).counts}   startup: {plural(len(startup.desc.blocks[0].ops), 'op')}"
        rows.append([(name, "name"), (counts, "")])
    show(bench.shell, rows)
