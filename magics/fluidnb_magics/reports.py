"""What a change of cells led to, in a line or two."""

from __future__ import annotations

from fluidnb.program.fragments import Fragment, Report
from fluidnb.runtime import global_scope
from fluidnb.viz.model import plural
from fluidnb.viz.spans import Line
from fluidnb_magics.workbench import Workbench


def report_lines(bench: Workbench, report: Report, fragment: Fragment | None = None) -> list[Line]:
    """The lines shown after a cell ran, or after cells went.

    Args:
        bench: the session.
        report: what happened.
        fragment: what the cell that ran is now, or None.

    Returns:
        The lines; none when there is nothing to say.
    """
    lines: list[Line] = []
    if fragment is not None:
        cell = fragment.task.source
        main, _ = bench.program(cell.program)
        whole = plural(sum(len(b.ops) for b in main.desc.blocks), "op")
        called = "program" if cell.program is None else f"program {cell.program}"
        made = contents(bench, fragment)
        lines.append([(fragment.title, "name"), (f"  {made}", ""), (f"   {called}: {whole}", "dim")])
    again = report.executed[1:] if fragment is not None else report.executed
    for words, titles in (("built again", again), ("removed", report.removed)):
        if titles:
            lines.append([(f"  {words}: {', '.join(titles)}", "")])
    for title, reason in report.stale.items():
        lines.append([("  stale: ", "warn"), (f"{title}, {reason}", "")])
    names = anew(bench)
    if names and (again or report.removed or report.executed):
        shown = ", ".join(names[:6]) + (f" and {plural(len(names) - 6, 'other')}" if len(names) > 6 else "")
        lines.append([(f"  first values at the next run: {shown}", "dim")])
    return lines


def contents(bench: Workbench, fragment: Fragment) -> str:
    """What a fragment holds, in words; operators that give parameters their first values are not counted.

    Args:
        bench: knows which programs are startup programs.
        fragment: the fragment.

    Returns:
        For example ``3 ops, 2 parameters``.
    """
    grown = [v for d in fragment.deltas for g in getattr(d, "growths", ()) for v in g.vars]
    parameters = {v.name() for v in grown if v.is_parameter()}
    startups = [startup for _, startup in bench.programs.values()]
    ops = sum(1 for d in fragment.deltas if d.program not in startups for _ in d.ops())
    words = [plural(ops, "op")]
    if parameters:
        words.append(plural(len(parameters), "parameter"))
    return ", ".join(words)


def anew(bench: Workbench) -> list[str]:
    """The variables that get a first value at the next run although others have theirs already."""
    names: list[str] = []
    for main, startup in bench.programs.values():
        missing = bench.values.missing(main, startup, global_scope())
        block = startup.desc.blocks[0]
        held = sum(v.persistable() for v in block.vars.values()) - len(missing)
        if held:
            names += missing
    return names
