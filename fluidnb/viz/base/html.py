"""Shared parts of HTML renderings: styled text, tables, a scrolling box."""

from collections.abc import Iterable, Sequence

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.styled_text import COLOURS, Line, mixed
from fluidnb.viz.base.svg import FONT

#: Style name -> CSS. Transparency and colours mixed with the page's own, so that it is readable on any background.
CSS = {
    "": "", "dim": "opacity:.75", "bold": "font-weight:700", "warn": f"font-weight:700;color:{mixed('#d97706')}",
    "name": "font-weight:600", "location": "opacity:.75;font-style:italic",
    **{role: f"font-weight:700;color:{mixed(colour)}" for role, colour in COLOURS.items()},
}  # fmt: skip


def boxed(element: str, note: str = "") -> str:
    """An element in a scrolling box."""
    heading = f'<div style="opacity:.75">{escape(note)}</div>' if note else ""
    return f'<div class="fluidnb" style="overflow:auto;max-height:42em;line-height:normal">{heading}{element}</div>'


def lines_html(lines: Iterable[Line]) -> str:
    """Lines of styled text as one HTML element."""
    body = "\n".join(pieces_html(line) for line in lines)
    css = f"margin:0;white-space:pre;overflow-x:auto;line-height:1.4;font-family:{escape(FONT)};font-size:12px"
    return f'<pre class="fluidnb" style="{css}">{body}</pre>'


def table_html(rows: Sequence[Sequence[Line]], head: Sequence[str] = ()) -> str:
    """Rows of cells of styled text as an HTML table."""
    return cells_html([[pieces_html(cell) for cell in row] for row in rows], head)


def cells_html(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Rows of HTML cells as a table."""
    css = "text-align:left;vertical-align:top;padding:1px 14px 1px 0;white-space:nowrap;border:0"
    lines = ["".join(f'<th style="{css};opacity:.75;font-weight:400">{escape(title)}</th>' for title in head)]
    lines += ["".join(f'<td style="{css}">{cell}</td>' for cell in row) for row in rows]
    body = "".join(f'<tr style="background:none">{line}</tr>' for line in lines if line)
    font = f"font-family:{escape(FONT)};font-size:12px"
    return f'<table style="border-collapse:collapse;border:0;margin:4px 0;color:inherit;{font}">{body}</table>'


def wrapped_html(lines: Sequence[Line]) -> str:
    """Lines of styled text as HTML that wraps."""
    font = f"font-family:{escape(FONT)};font-size:12px;line-height:1.45"
    css = "white-space:pre-wrap;overflow-wrap:anywhere;padding-left:2em;text-indent:-2em"
    return f'<div style="{font}">{"".join(f"""<div style="{css}">{pieces_html(line)}</div>""" for line in lines)}</div>'


def pieces_html(line: Line) -> str:
    """A line of styled text as HTML."""
    return "".join(span_html(text, style) for text, style in line)


def span_html(text: str, style: str) -> str:
    """A piece of styled text as HTML."""
    return f'<span style="{CSS[style]}">{escape(text)}</span>' if style else escape(text)
