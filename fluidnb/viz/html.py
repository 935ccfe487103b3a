"""HTML faces: a program as a picture that scrolls, or as a listing that folds; everything else as styled lines."""

from __future__ import annotations

from collections.abc import Iterable

from fluidnb.visible import escape
from fluidnb.viz.dot import PATIENCE, dot_svg
from fluidnb.viz.model import ProgramPicture
from fluidnb.viz.spans import COLOURS, Line, columns, mixed
from fluidnb.viz.svg import FONT, program_svg
from fluidnb.viz.text import foldable_rows

#: Style name -> CSS. Transparency and colours mixed with the page's own, so that it is readable on any ground.
CSS = {
    "": "", "dim": "opacity:.75", "bold": "font-weight:700", "warn": f"font-weight:700;color:{mixed('#d97706')}",
    "name": "font-weight:600", "place": "opacity:.75;font-style:italic",
    **{role: f"font-weight:700;color:{mixed(colour)}" for role, colour in COLOURS.items()},
}  # fmt: skip

#: Operators of a program drawn at most, where nobody says.
SHOWN = 400
#: The sign of what can be opened stands in the margin, so that rows are below each other.
SUMMARY = "cursor:pointer;list-style-position:outside"


def program_html(picture: ProgramPicture, uid: str = "", limit: int = SHOWN) -> str:
    """A program as HTML, in a box that scrolls: its SVG, or a listing that opens where something is folded.

    Args:
        picture: the program.
        uid: start of all ids; unique by default.
        limit: operators drawn at most.

    Returns:
        One element.
    """
    if any(op.hides or op.folded for block in picture.blocks for _, op in block.walk()):
        return _folding(picture, limit)
    return boxed(program_svg(picture, uid, limit))


def boxed(element: str, note: str = "") -> str:
    """An element in a box that scrolls.

    Args:
        element: the element.
        note: a line of text above it.

    Returns:
        One element.

    Example:
        >>> print(boxed("<svg/>"))
        <div class="fluidnb" style="overflow:auto;max-height:42em;line-height:normal"><svg/></div>
    """
    said = f'<div style="opacity:.75">{escape(note)}</div>' if note else ""
    return f'<div class="fluidnb" style="overflow:auto;max-height:42em;line-height:normal">{said}{element}</div>'


def graph_html(shown: ProgramPicture, note: str = "", patience: float = PATIENCE) -> str:
    """A level of a program as a graph, in a box that scrolls; a listing where Graphviz gives none.

    Args:
        shown: the level.
        note: more about it, for the line above.
        patience: seconds that the layout may take.

    Returns:
        One element.
    """
    layout = dot_svg(shown, patience=patience)
    if layout.svg:
        return boxed(layout.svg, "   ".join(text for text in (f"{shown.title}  {shown.counts}", note) if text))
    return boxed(program_html(shown), f"A listing instead of a graph: {layout.why}.")


def lines_html(lines: Iterable[Line]) -> str:
    """Lines of styled text as one HTML element.

    Args:
        lines: the lines.

    Returns:
        The element.

    Example:
        >>> print(lines_html([[("x", "name"), ("  int64[3] <", "")]]))
        <pre class="fluidnb" style="...;..."><span style="font-weight:600">x</span>  int64[3] &lt;</pre>
    """
    body = "\n".join("".join(_piece(text, CSS[style]) for text, style in line) for line in lines)
    css = f"margin:0;white-space:pre;overflow-x:auto;line-height:1.4;font-family:{escape(FONT)};font-size:12px"
    return f'<pre class="fluidnb" style="{css}">{body}</pre>'


def _folding(picture: ProgramPicture, limit: int) -> str:
    """A listing with a <details> for each fold and each block, which needs no script to open."""
    marks, rows = zip(*foldable_rows(picture, limit), strict=True)
    parts = []
    for mark, line in zip(marks, columns(rows), strict=True):
        row = "".join(_piece(text, CSS[style]) for text, style in line)
        if mark in ("fold", "block"):
            opened = ' open=""' if mark == "block" else ""
            parts.append(f'<details{opened}><summary style="{SUMMARY}">{row}</summary>')
        else:
            parts.append("</details>" if mark == "end" else f"<div>{row}</div>")
    css = f"white-space:pre;line-height:1.5;padding-left:1.3em;font-family:{escape(FONT)};font-size:12px"
    return boxed(f'<div style="{css}">{"".join(parts)}</div>')


def _piece(text: str, css: str) -> str:
    return f'<span style="{css}">{escape(text)}</span>' if css else escape(text)
