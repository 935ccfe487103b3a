"""HTML rendering of programs: a scrolling picture, a graph, or a collapsible listing."""

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.html import boxed, pieces_html
from fluidnb.viz.base.styled_text import columns
from fluidnb.viz.base.svg import FONT
from fluidnb.viz.program.graphviz import PATIENCE, dot_svg
from fluidnb.viz.program.model import ProgramPicture
from fluidnb.viz.program.svg import program_svg
from fluidnb.viz.program.text import foldable_rows

#: Operators of a program drawn at most by default.
SHOWN = 400
#: The marker of collapsible rows is in the margin, so that rows align.
SUMMARY = "cursor:pointer;list-style-position:outside"


def program_html(picture: ProgramPicture, uid: str = "", limit: int = SHOWN) -> str:
    """A program in a scrolling box: its SVG, or a collapsible listing if something is collapsed."""
    if any(op.hides or op.folded for block in picture.blocks for _, op in block.walk()):
        return _folding(picture, limit)
    return boxed(program_svg(picture, uid, limit))


def graph_html(picture: ProgramPicture, note: str = "", patience: float = PATIENCE) -> str:
    """A program as a graph in a scrolling box; a listing if the layout takes more seconds than ``patience``."""
    layout = dot_svg(picture, patience=patience)
    if layout.svg:
        return boxed(layout.svg, "   ".join(text for text in (f"{picture.title}  {picture.counts}", note) if text))
    return boxed(program_html(picture), f"A listing instead of a graph: {layout.why}.")


def _folding(picture: ProgramPicture, limit: int) -> str:
    """A listing with a <details> element for each collapsed run and block."""
    marks, rows = zip(*foldable_rows(picture, limit), strict=True)
    parts = []
    for mark, line in zip(marks, columns(rows), strict=True):
        row = pieces_html(line)
        if mark in ("fold", "block"):
            opened = ' open=""' if mark == "block" else ""
            parts.append(f'<details{opened}><summary style="{SUMMARY}">{row}</summary>')
        else:
            parts.append("</details>" if mark == "end" else f"<div>{row}</div>")
    css = f"white-space:pre;line-height:1.5;padding-left:1.3em;font-family:{escape(FONT)};font-size:12px"
    return boxed(f'<div style="{css}">{"".join(parts)}</div>')
