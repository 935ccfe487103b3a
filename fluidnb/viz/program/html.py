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
SUMMARY = "display:list-item;cursor:pointer;list-style-position:outside"
_BOX = "font:inherit;color:inherit;background:transparent;border:1px solid rgba(128,128,128,.6);border-radius:3px"
#: Hides the rows that lack a text, and opens what collapses the others; without a text, everything is as it was.
_SEARCH = (
    "const t=this.value.trim().toLowerCase(),a=this.nextElementSibling;"
    "for(const d of a.querySelectorAll('details')){d.dataset.was??=d.open;if(!t)d.open=d.dataset.was==='true'}"
    "for(const r of a.querySelectorAll('div,details')){const h=!r.textContent.toLowerCase().includes(t);"
    "r.style.display=h&&t?'none':'';if(t&&!h&&r.matches('details'))r.open=true}"
)


def program_html(picture: ProgramPicture, uid: str = "", limit: int = SHOWN) -> str:
    """A program in a scrolling box: its SVG, or a collapsible listing if something is collapsed."""
    if picture.is_folded:
        return folding_html(picture, limit)
    return boxed(program_svg(picture, uid, limit))


def graph_html(picture: ProgramPicture, note: str = "", patience: float = PATIENCE) -> str:
    """A program as a graph in a scrolling box; a listing if the layout takes more seconds than ``patience``."""
    layout = dot_svg(picture, patience=patience)
    if layout.svg:
        return boxed(layout.svg, "   ".join(text for text in (f"{picture.title}  {picture.counts}", note) if text))
    return boxed(program_html(picture), f"A listing instead of a graph: {layout.why}.")


def folding_html(picture: ProgramPicture, limit: int = SHOWN) -> str:
    """A listing with a <details> element for each collapsed run and block, and a box that searches it.

    It needs no kernel and no other script, so that it works in an exported notebook too. nbconvert shortens a text of
    spaces alone to one space, unless they are no-break spaces.
    """
    marks, rows = zip(*foldable_rows(picture, limit), strict=True)
    parts = []
    for mark, line in zip(marks, columns(rows), strict=True):
        row = pieces_html([(text if text.strip() else text.replace(" ", "\xa0"), style) for text, style in line])
        if mark in ("fold", "block"):
            opened = ' open=""' if mark == "block" else ""
            parts.append(f'<details{opened}><summary style="{SUMMARY}">{row}</summary>')
        else:
            parts.append("</details>" if mark == "end" else f"<div>{row}</div>")
    css = f"white-space:pre;line-height:1.5;padding-left:1.3em;font-family:{escape(FONT)};font-size:12px"
    label = 'type="search" placeholder="search" aria-label="search operators"'
    find = f'<input {label} style="{_BOX}" oninput="{escape(_SEARCH)}"/>'
    return boxed(f'{find}<div style="{css}">{"".join(parts)}</div>')
