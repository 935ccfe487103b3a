"""``%fluid undo``: undoes the last change."""

from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.commands._command import Namespace, Section, Workbench, command, show
from fluidnb_magics.session.change_report import titles_text


@command(Section.BUILD, "undo")
def undo(bench: Workbench, args: Namespace) -> None:
    """Undo the last change (cell run, removal or edit).

    A cell that was deleted from the notebook comes back as a ghost: the next %%fluid cell removes it again, unless the
    notebook has it by then. Where the front end does not report its cells, as in IPython, it stays until it is dropped.
    """
    report = bench.undo()
    back = ", ".join(report.executed) or "nothing"
    removed = [title for title in report.removed if title not in report.executed]
    gone = f"; removed: {', '.join(removed)}" if removed else ""
    lines: list[Line] = [[(f"restored: {back}{gone}", "")]]
    ghosts = [p.title for p in bench.ghosts if bench.notebook.is_deleted(p.cell.cell_id)]
    if ghosts:
        lines.append([(f"  not in the notebook: {titles_text(ghosts)}; the next %%fluid cell removes it again", "dim")])
    show(bench.shell, lines)
