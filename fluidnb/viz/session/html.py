"""HTML rendering of a debug session: the next operator highlighted, values with histograms."""

from __future__ import annotations

from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.visible import escape
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import COLOURS, columns
from fluidnb.viz.session.text import error_lines, head_line, listing, place_lines, value_lines
from fluidnb.viz.session.values import read_values

#: Characters a line of the listing may have.
_WIDE = 116
_BOX = "margin:4px 0;padding:2px 0 2px 6px;border-left:3px solid "


def session_html(session: Session, around: int = 3) -> str:
    """The position of a session as HTML, readable as the text rendering without styles.

    Example:
        >>> y = fluid.layers.relu(fluid.layers.fill_constant([2], "float32", 1.0))
        >>> d = fluid.debug(feed={}); text = session_html(d); d.close()
        >>> text.count("background"), text.startswith('<div class="fluidnb"'), "constant(" in text
        (1, True, True)
    """
    snapshot = session.snapshot
    parts = [lines_html([head_line(snapshot), *place_lines(snapshot, session.program)])]
    if snapshot.frames:
        marks = () if session.closed or snapshot.state == "running" else session.marks()
        rows, at = listing(snapshot.frames[-1], session.program, marks, around)
        lines = columns(rows, _WIDE)
        title = "" if snapshot.op is None else f'title="{escape(snapshot.op.text)}" '
        # on the <pre> itself: notebooks give that element a background
        here = lines_html(lines[at : at + 1]).replace('style="', f'{title}style="background:{_tint(snapshot)};', 1)
        parts += [lines_html(lines[:at])] * bool(at) + [here] + [lines_html(lines[at + 1 :])] * bool(lines[at + 1 :])
    if snapshot.error is not None:
        parts.append(f'<div style="{_BOX}{COLOURS["backward"]}">{lines_html(error_lines(snapshot))}</div>')
    values = value_lines(snapshot, read_values(session), reads=True)
    if values:
        parts.append(lines_html(values))
    return f'<div class="fluidnb" style="{_BOX}{_colour(snapshot)}">{"".join(parts)}</div>'


def _colour(snapshot: Snapshot) -> str:
    """Red after an error, green when finished, else blue."""
    if snapshot.error is not None:
        return COLOURS["backward"]
    return COLOURS["optimizer" if snapshot.state == "done" else "forward"]


def _tint(snapshot: Snapshot) -> str:
    """The same colour, transparent."""
    red, green, blue = (int(_colour(snapshot)[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},.18)"
