"""What a change of cells led to, in a line or two."""

from __future__ import annotations

from typing import Any

from fluidnb.cells.cell_log import CellRun, Report
from fluidnb.program import Program
from fluidnb.program.origin import fragment_key
from fluidnb.runtime import global_scope
from fluidnb.viz.base.styled_text import Line, plural
from fluidnb_magics.session.cell_groups import Placed
from fluidnb_magics.session.workbench import DEFAULT, Workbench

#: How many cells a line names.
_SHOWN = 3


def report_lines(bench: Workbench, report: Report, cell: Placed | None = None) -> list[Line]:
    """The lines shown after a cell ran, or after cells went.

    Args:
        bench: the session.
        report: what happened.
        cell: the cell that ran, or None.

    Returns:
        The lines; none when there is nothing to say.
    """
    lines: list[Line] = []
    if cell is not None:
        main, _ = bench.program(cell.program)
        whole = plural(sum(len(b.ops) for b in main.desc.blocks), "op")
        called = "program" if cell.program is None else f"program {cell.program}"
        made = contents(bench, cell.fragment, cell) + place(bench, cell)
        lines.append([(cell.title, "name"), (f"  {made}", ""), (f"   {called}: {whole}", "dim")])
    again = report.executed[1:] if cell is not None else report.executed
    for words, titles in (("built again", again), ("removed", report.removed)):
        if titles:
            lines.append([(f"  {words}: {some(titles)}", "")])
    for title, reason in list(report.stale.items())[:_SHOWN]:
        lines.append([("  stale: ", "warn"), (f"{title}, {reason}", "")])
    if len(report.stale) > _SHOWN:
        more = plural(len(report.stale) - _SHOWN, "other cell")
        lines.append([("  stale: ", "warn"), (f"{more}, which %fluid cells lists", "")])
    names = [] if report.unchanged and not again and not report.removed else anew(bench)
    if names and (again or report.removed or report.executed):
        shown = ", ".join(names[:6]) + (f" and {plural(len(names) - 6, 'other')}" if len(names) > 6 else "")
        lines.append([(f"  will be initialized on the next run: {shown}", "dim")])
    return lines


def some(titles: list[str]) -> str:
    """The first of some cells, and how many others there are.

    Args:
        titles: how they are called.

    Example:
        >>> some(["a", "b"]), some(["a", "b", "c", "d", "e"])
        ('a, b', 'a, b, c and 2 others')
    """
    names = list(dict.fromkeys(titles))
    rest = f" and {plural(len(names) - _SHOWN, 'other')}" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


def stale_line(bench: Workbench, program: Program) -> Line | None:
    """The line that says which cells are not part of a run; None while no cell is stale.

    Args:
        bench: the session.
        program: the program that is about to run.
    """
    mains = {main: name for name, (main, _) in bench.programs.items()}
    if program not in mains and program.origin is None:
        return None
    name = mains.get(program)
    titles = [p.title for p in bench.cells if p.stale and (name is None or (p.program or DEFAULT) == name)]
    if not titles:
        return None
    cells, are = ("cell", "which is") if len(titles) == 1 else ("cells", "which are")
    return [("not part of this run: ", "warn"), (f"{cells} {some(titles)}, {are} stale (%fluid cells)", "")]


def contents(bench: Workbench, fragment: CellRun, cell: Placed | None = None) -> str:
    """A summary of a fragment, in words, without operators that initialize parameters.

    Args:
        bench: knows which programs are startup programs.
        fragment: the fragment.
        cell: the cell of the fragment that counts; all of them when left out.

    Returns:
        For example ``3 ops, 2 parameters``.
    """

    def counts(view: Any) -> bool:
        key = fragment.key if view is None or view.origin is None else fragment_key(view.origin)
        return cell is None or key == cell.key

    grown = [v for d in fragment.deltas for g in getattr(d, "growths", ()) for v in g.vars if counts(v.view)]
    parameters = {v.name() for v in grown if v.is_parameter()}
    startups = [startup for _, startup in bench.programs.values()]
    ops = sum(counts(op.view) for d in fragment.deltas if d.program not in startups for op in d.ops())
    words = [plural(ops, "op")]
    if parameters:
        words.append(plural(len(parameters), "parameter"))
    return ", ".join(words)


def place(bench: Workbench, cell: Placed) -> str:
    """The block to which a cell appends, and whether it is open, in words.

    Args:
        bench: knows the blocks.
        cell: the cell.

    Returns:
        For example `` in block 1 of loop``; empty for a cell of its own.
    """
    words = ""
    if cell.owner is not None:
        block = bench.block_of(cell)
        words = f" in {'a block' if block is None else f'block {block.idx}'} of {cell.owner.cell.title}"
    return words + (f", {cell.group.state}" if cell.group.state else "")


def anew(bench: Workbench) -> list[str]:
    """Variables that the next run initializes although others are initialized already."""
    names: list[str] = []
    for main, startup in bench.programs.values():
        missing = bench.values.missing(main, startup, global_scope())
        block = startup.desc.blocks[0]
        held = sum(v.persistable() for v in block.vars.values()) - len(missing)
        if held:
            names += missing
    return names
