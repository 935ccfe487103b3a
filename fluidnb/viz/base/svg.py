"""Shared parts of SVG renderings: the element, its heading, unique ids."""

import uuid
from collections.abc import Iterable

from fluidnb.utils.escapes import escape

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
#: Width of a character at font size 12.
CHAR = 7.23


def svg_element(
    parts: Iterable[str], label: str, width: float, height: float, *, uid: str = "", font: int = 12, style: str = ""
) -> str:
    """An SVG element in the colour of the page's text, with a label for screen readers."""
    width, height = round(width), round(height)
    ident, css = f'id="{uid}" ' if uid else "", f' style="{style}"' if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {ident}role="img" aria-label="{escape(label)}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="{font}" '
        f'fill="currentColor"{css}>{"".join(parts)}</svg>'
    )


def heading(title: str, words: str, y: int = 16) -> str:
    """The first line of a picture: its title, and a description."""
    return (
        f'<text x="1" y="{y}"><tspan font-weight="700">{escape(title)}</tspan>'
        f'<tspan fill-opacity=".75">  {escape(words)}</tspan></text>'
    )


def new_uid() -> str:
    """A unique prefix for the ids of one picture."""
    return f"f{uuid.uuid4().hex[:10]}_"
