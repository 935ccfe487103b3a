"""``%fluid cells``, ``drop``, ``undo``, ``reset``: what the cells built."""

from __future__ import annotations

from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.cells.cell_log import CellRun
from fluidnb.runtime import global_scope
from fluidnb.viz.base.styled_text import Line, Span, columns, plural
from fluidnb_magics.arguments import parse_argstring, unquoted
from fluidnb_magics.display import show, width
from fluidnb_magics.session.cell_groups import Placed, placed
from fluidnb_magics.session.change_report import contents, place, report_lines
from fluidnb_magics.session.workbench import Workbench


@magic_arguments("fluid cells")
def cells(bench: Workbench, line: str) -> None:
    """List the cells in program order: what each one made, which are stale, which the notebook no longer has."""
    parse_argstring(cells, line)
    rows: list[list[Line]] = []
    for fragment in bench.log.fragments:
        if fragment.loose:
            rows.append([[("(edits outside cells)", "dim")], [_state(bench, fragment)], [("", "")]])
        else:
            rows += [_row(bench, cell) for cell in placed(fragment)]
    none: list[Line] = [[("no cells yet: write one that starts with %%fluid", "dim")]]
    show(bench.shell, columns(rows, width(bench.shell)) or none)


@magic_arguments("fluid drop")
@argument("names", nargs="+", metavar="NAME", help="a cell, as %%fluid cells calls it")
def drop(bench: Workbench, line: str) -> None:
    """Remove what cells made; later cells that read it are built again."""
    args = parse_argstring(drop, line)
    show(bench.shell, report_lines(bench, bench.drop([unquoted(name) for name in args.names])))


@magic_arguments("fluid undo")
def undo(bench: Workbench, line: str) -> None:
    """Take back the last change: a cell that ran, one that went, edits in between."""
    parse_argstring(undo, line)
    report = bench.undo()
    back = ", ".join(report.executed) or "nothing"
    removed = [title for title in report.removed if title not in report.executed]
    gone = f"; removed: {', '.join(removed)}" if removed else ""
    show(bench.shell, [[(f"put back: {back}{gone}", "")]])


@magic_arguments("fluid reset")
@argument("--params", action="store_true", help="only the values of parameters: the next run starts over")
def reset(bench: Workbench, line: str) -> None:
    """Remove what all cells made; ``%fluid undo`` brings it back. With --params, drop trained values instead."""
    args = parse_argstring(reset, line)
    if args.params:
        names = bench.forget_values(global_scope())
        show(bench.shell, [[(f"{plural(len(names), 'variable')} start over at the next run", "")]])
    else:
        show(bench.shell, report_lines(bench, bench.reset()))


def _row(bench: Workbench, cell: Placed) -> list[Line]:
    state = [_state(bench, cell.fragment, cell)]
    if cell.program and cell.owner is None:
        state.append((f"  in program {cell.program}", "dim"))
    if bench.notebook.is_ghost(cell.cell.cell_id):
        state.append(("  ghost: no cell of the notebook", "warn"))
    first = next((text.strip() for text in cell.cell.source.splitlines() if text.strip()), "")
    return [[("  " * cell.depth + cell.title, "name")], state, [(first[:60], "dim")]]


def _state(bench: Workbench, fragment: CellRun, cell: Placed | None = None) -> Span:
    if fragment.stale:
        return "stale: " + fragment.stale, "warn"
    return contents(bench, fragment, cell) + ("" if cell is None else place(bench, cell)), ""
