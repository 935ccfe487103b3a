"""The results of a change of cells, in a line or two."""

from __future__ import annotations

from typing import Any

from fluidnb.cells.cell_log import CellRun, Report
from fluidnb.program import Program
from fluidnb.program.origin import cell_key
from fluidnb.runtime import global_scope
from fluidnb.viz.base.styled_text import Line, plural
from fluidnb_magics.session.cell_groups import Placed
from fluidnb_magics.session.workbench import DEFAULT, Workbench

#: How many cells a line names.
_SHOWN = 3


def report_lines(bench: Workbench, report: Report, cell: Placed | None = None, why: str = "") -> list[Line]:
    """The lines shown after a cell ran, or after cells were removed (None): by a command, or because of ``why``."""
    lines: list[Line] = []
    if cell is not None:
        main, _ = bench.program(cell.program)
        whole = plural(sum(len(b.ops) for b in main.desc.blocks), "op")
        called = "program" if cell.program is None else f"program {cell.program}"
        text = contents(bench, cell.run, cell) + block_text(bench, cell)
        lines.append([(cell.title, "name"), (f"  {text}", ""), (f"   {called}: {whole}", "dim")])
    again = report.executed[1:] if cell is not None else report.executed
    for words, titles, reason in (("built again", again, ""), ("removed", report.removed, why)):
        if titles:
            lines.append([(f"  {words}: {titles_text(titles)}" + (f" ({reason})" if reason else ""), "")])
    for title, reason in list(report.stale.items())[:_SHOWN]:
        lines.append([("  stale: ", "warn"), (f"{title}, {reason}", "")])
    if len(report.stale) > _SHOWN:
        more = plural(len(report.stale) - _SHOWN, "other cell")
        lines.append([("  stale: ", "warn"), (f"{more}, which %fluid cells lists", "")])
    names = [] if report.unchanged and not again and not report.removed else _uninitialized(bench)
    if names and (again or report.removed or report.executed):
        shown = ", ".join(names[:6]) + (f" and {plural(len(names) - 6, 'other')}" if len(names) > 6 else "")
        lines.append([(f"  will be initialized on the next run: {shown}", "dim")])
    return lines


def titles_text(titles: list[str]) -> str:
    """The first of some cells, and how many others there are."""
    names = list(dict.fromkeys(titles))
    rest = f" and {plural(len(names) - _SHOWN, 'other')}" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


def stale_line(bench: Workbench, program: Program) -> Line | None:
    """The line that names the cells that are not part of a run; None while no cell is stale."""
    mains = {main: name for name, (main, _) in bench.programs.items()}
    if program not in mains and program.origin is None:
        return None
    name = mains.get(program)
    titles = [p.title for p in bench.cells if p.stale and (name is None or (p.program or DEFAULT) == name)]
    if not titles:
        return None
    cells, are = ("cell", "which is") if len(titles) == 1 else ("cells", "which are")
    return [("not part of this run: ", "warn"), (f"{cells} {titles_text(titles)}, {are} stale (%fluid cells)", "")]


def contents(bench: Workbench, run: CellRun, cell: Placed | None = None) -> str:
    """The numbers of operators and parameters of a cell run, or of one cell in it; without initialization."""

    def counts(view: Any) -> bool:
        key = run.key if view is None or view.origin is None else cell_key(view.origin)
        return cell is None or key == cell.key

    grown = [v for d in run.deltas for g in getattr(d, "growths", ()) for v in g.vars if counts(v.view)]
    parameters = {v.name() for v in grown if v.is_parameter()}
    startups = [startup for _, startup in bench.programs.values()]
    ops = sum(counts(op.view) for d in run.deltas if d.program not in startups for op in d.ops())
    return plural(ops, "op") + (f", {plural(len(parameters), 'parameter')}" if parameters else "")


def block_text(bench: Workbench, cell: Placed) -> str:
    """The block to which a cell appends, as `` in block 1 of loop``, and whether it is open."""
    words = ""
    if cell.owner is not None:
        block = bench.block_of(cell)
        words = f" in {'a block' if block is None else f'block {block.idx}'} of {cell.owner.cell.title}"
    return words + (f", {cell.group.state}" if cell.group.state else "")


def _uninitialized(bench: Workbench) -> list[str]:
    """Variables that the next run initializes although others are initialized already."""
    names: list[str] = []
    for main, startup in bench.programs.values():
        missing = bench.values.missing(main, startup, global_scope())
        if sum(v.persistable() for v in startup.desc.blocks[0].vars.values()) > len(missing):
            names += missing
    return names
