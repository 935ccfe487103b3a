"""Text rendering of the debugger panel: position, breakpoints, innermost scope."""

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.viz.base.curves import sparkline
from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb.viz.session.panel_values import ScopePage, ValueLine, Window, read_window
from fluidnb.viz.session.text import breakpoint_lines, session_lines
from fluidnb.viz.session.values import is_paused, read_values

#: Operators shown before and after the next one; variables of a scope.
_AROUND, _MOST = 8, 20


def panel_lines(session: Session, width: int = 0) -> list[Line]:
    """Text rendering of the panel."""
    marks = session.marks() if is_paused(session) else ()
    lines = session_lines(session.snapshot, session.program, marks, width, _AROUND, read_values(session))
    return [*lines, *below_lines(session, width)]


def below_lines(session: Session, width: int = 0) -> list[Line]:
    """The breakpoints and the innermost scope."""
    scope = session.inspect(_innermost, width) if is_paused(session) else []
    return [*breakpoint_lines(session.breakpoints), *scope]


def value_cells(line: ValueLine) -> list[Line]:
    """A variable as a row of cells."""
    facts = line.facts + (f"  {line.lod}" if line.lod else "")
    numbers: Line = [(line.statistics, "warn" if line.bad else ""), ("  " + sparkline(line.histogram), "forward")]
    return [[("  ", ""), (line.name, "name")], [(facts, "dim")], numbers]


def _innermost(debugger: Debugger, width: int) -> list[Line]:
    page: ScopePage = read_window(debugger, Window(count=_MOST))
    block = debugger.tape.interpreter.stack[-1].block.index
    head: Line = [(f"scope of block {block}", "bold"), (f"  {plural(page.count, 'variable')}", "dim")]
    left = page.count - len(page.rows)
    more: list[Line] = [[(f"  … {plural(left, 'more variable')}", "dim")]] if left else []
    return [head, *columns([value_cells(row) for row in page.rows], width), *more]
