"""``%fluid undo``: undoes the last change."""

from __future__ import annotations

from argparse import Namespace

from fluidnb_magics.commands import Section, command
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench


@command(Section.BUILD)
def undo(bench: Workbench, args: Namespace) -> None:
    """Undo the last change (cell run, removal or edit)."""
    report = bench.undo()
    back = ", ".join(report.executed) or "nothing"
    removed = [title for title in report.removed if title not in report.executed]
    gone = f"; removed: {', '.join(removed)}" if removed else ""
    show(bench.shell, [[(f"restored: {back}{gone}", "")]])
