"""``%fluid cells``: lists the cells and what each one appended."""

from __future__ import annotations

from argparse import Namespace

from fluidnb.cells.cell_log import CellRun
from fluidnb.viz.base.styled_text import Line, Span, columns
from fluidnb_magics.commands import Section, command
from fluidnb_magics.display import show, width
from fluidnb_magics.session.cell_groups import Placed, placed
from fluidnb_magics.session.change_report import contents, place
from fluidnb_magics.session.workbench import Workbench


@command(Section.BUILD)
def cells(bench: Workbench, args: Namespace) -> None:
    """List the cells in program order: their operators, stale cells, cells deleted from the notebook."""
    rows: list[list[Line]] = []
    for fragment in bench.log.fragments:
        if fragment.loose:
            rows.append([[("(edits outside cells)", "dim")], [_state(bench, fragment)], [("", "")]])
        else:
            rows += [_row(bench, cell) for cell in placed(fragment)]
    none: list[Line] = [[("no cells yet: write one that starts with %%fluid", "dim")]]
    show(bench.shell, columns(rows, width(bench.shell)) or none)


def _row(bench: Workbench, cell: Placed) -> list[Line]:
    state = [_state(bench, cell.fragment, cell)]
    if cell.program and cell.owner is None:
        state.append((f"  in program {cell.program}", "dim"))
    if bench.notebook.is_deleted(cell.cell.cell_id):
        state.append(("  not in the notebook any more", "warn"))
    first = next((text.strip() for text in cell.cell.source.splitlines() if text.strip()), "")
    return [[("  " * cell.depth + cell.title, "name")], state, [(first[:60], "dim")]]


def _state(bench: Workbench, fragment: CellRun, cell: Placed | None = None) -> Span:
    if fragment.stale:
        return "stale: " + fragment.stale, "warn"
    return contents(bench, fragment, cell) + ("" if cell is None else place(bench, cell)), ""
