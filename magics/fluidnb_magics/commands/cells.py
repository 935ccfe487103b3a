"""``%fluid cells``: lists the cells and what each one appended."""

from fluidnb.cells.cell_log import CellRun
from fluidnb.viz.base.styled_text import Line, Span, columns
from fluidnb_magics.commands._command import Namespace, Section, Workbench, command, show, width
from fluidnb_magics.session.cell_groups import Placed, placed
from fluidnb_magics.session.change_report import block_text, contents


@command(Section.BUILD, "cells")
def cells(bench: Workbench, args: Namespace) -> None:
    """List the cells in program order: their operators, stale cells, ghosts.

    A ghost is a part of the program, but not of the notebook: a deleted cell that `%fluid undo` brought back.
    """
    ghosts = {p.key for p in bench.ghosts}
    rows: list[list[Line]] = []
    for run in bench.log.runs:
        if run.loose:
            rows.append([[("(edits outside cells)", "dim")], [_state(bench, run)], [("", "")]])
        else:
            rows += [_row(bench, cell, cell.key in ghosts) for cell in placed(run)]
    none: list[Line] = [[("no cells yet: write one that starts with %%fluid", "dim")]]
    show(bench.shell, columns(rows, width(bench.shell)) or none)


def _row(bench: Workbench, cell: Placed, is_ghost: bool) -> list[Line]:
    state = [_state(bench, cell.run, cell)]
    if cell.program and cell.owner is None:
        state.append((f"  in program {cell.program}", "dim"))
    if bench.notebook.is_deleted(cell.cell.cell_id):
        state.append(("  ghost: not in the notebook any more", "warn"))
    elif is_ghost:
        state.append(("  ghost: restored by %fluid undo, not run since", "warn"))
    first = next((text.strip() for text in cell.cell.source.splitlines() if text.strip()), "")
    return [[("  " * cell.depth + cell.title, "name")], state, [(first[:60], "dim")]]


def _state(bench: Workbench, run: CellRun, cell: Placed | None = None) -> Span:
    if run.stale:
        return "stale: " + run.stale, "warn"
    return contents(bench, run, cell) + ("" if cell is None else block_text(bench, cell)), ""
