"""HTML faces: a program as a picture that scrolls, everything else as styled lines."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from fluidnb.viz.model import ProgramPicture
from fluidnb.viz.spans import COLOURS, Line
from fluidnb.viz.svg import FONT, program_svg

#: Style name -> CSS. Only transparency and middle colours, so that it is readable on light and on dark ground.
_CSS = {
    "": "", "dim": "opacity:.6", "bold": "font-weight:700", "warn": "font-weight:700;color:#d97706",
    "name": "font-weight:600", "place": "opacity:.5;font-style:italic",
    **{role: f"font-weight:700;color:{colour}" for role, colour in COLOURS.items()},
}  # fmt: skip


def program_html(picture: ProgramPicture, uid: str = "", limit: int = 400) -> str:
    """A program as HTML: its SVG in a box that scrolls.

    Args:
        picture: the program.
        uid: start of all ids; unique by default.
        limit: operators drawn at most.

    Returns:
        One element.
    """
    return (
        '<div class="fluidnb" style="overflow:auto;max-height:42em;line-height:normal">'
        f"{program_svg(picture, uid, limit)}</div>"
    )


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
    body = "\n".join("".join(_piece(text, _CSS[style]) for text, style in line) for line in lines)
    css = f"margin:0;white-space:pre;overflow-x:auto;line-height:1.4;font-family:{escape(FONT)};font-size:12px"
    return f'<pre class="fluidnb" style="{css}">{body}</pre>'


def _piece(text: str, css: str) -> str:
    return f'<span style="{css}">{escape(text)}</span>' if css else escape(text)
