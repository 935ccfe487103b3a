"""``%fluid programs``: the programs of the session."""

from __future__ import annotations

from argparse import Namespace

from fluidnb.viz import (
    read_program,
)
from fluidnb.viz.base.styled_text import plural
from fluidnb_magics.commands import Section, command
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench


@command(Section.INSPECT)
def programs(bench: Workbench, args: Namespace) -> None:
    """List the programs of this session; ``%%fluid --program NAME`` makes one."""
    rows = []
    for name, (main, startup) in bench.programs.items():
        counts = f"  {read_program(main).counts}   startup: {plural(len(startup.desc.blocks[0].ops), 'op')}"
        rows.append([(name, "name"), (counts, "")])
    show(bench.shell, rows)
