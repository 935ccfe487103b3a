"""HTML rendering of a debug session: the next operator highlighted, values with histograms."""

from fluidnb.debug.session import Session
from fluidnb.utils.escapes import escape
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import COLOURS, columns
from fluidnb.viz.session.text import error_lines, head_line, listing, location_lines, value_lines
from fluidnb.viz.session.values import read_values

#: Characters a line of the listing may have.
_WIDE = 116
_BOX = "margin:4px 0;padding:2px 0 2px 6px;border-left:3px solid "


def session_html(session: Session, around: int = 3) -> str:
    """The position of a session as HTML, readable as the text rendering without styles."""
    if session.there is not None:
        return str(session.there(session_html, around))
    snapshot = session.snapshot
    role = "backward" if snapshot.error is not None else "optimizer" if snapshot.state == "done" else "forward"
    red, green, blue = (int(COLOURS[role][i : i + 2], 16) for i in (1, 3, 5))
    parts = [lines_html([head_line(snapshot), *location_lines(snapshot, session.program)])]
    if snapshot.frames:
        marks = () if session.closed or snapshot.state == "running" else session.marks()
        rows, at = listing(snapshot.frames[-1], session.program, marks, around)
        lines = columns(rows, _WIDE)
        title = "" if snapshot.op is None else f'title="{escape(snapshot.op.text)}" '
        # on the <pre> itself: notebooks give that element a background
        tint = f'{title}style="background:rgba({red},{green},{blue},.18);'
        here = lines_html(lines[at : at + 1]).replace('style="', tint, 1)
        parts += [lines_html(lines[:at])] * bool(at) + [here] + [lines_html(lines[at + 1 :])] * bool(lines[at + 1 :])
    if snapshot.error is not None:
        parts.append(f'<div style="{_BOX}{COLOURS["backward"]}">{lines_html(error_lines(snapshot))}</div>')
    values = value_lines(snapshot, read_values(session), reads=True)
    if values:
        parts.append(lines_html(values))
    return f'<div class="fluidnb" style="{_BOX}{COLOURS[role]}">{"".join(parts)}</div>'
