"""Lines of styled text, independent of any terminal library."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from fluidnb.extras import is_installed
from fluidnb.utils.escapes import visible
from fluidnb.utils.text_width import beginning, text_width

if TYPE_CHECKING:
    from rich.text import Text

#: A piece of text and the name of its style, a key of `STYLES`.
Span = tuple[str, str]
Line = list[Span]
#: Colours of the roles: of middle lightness, readable on light and dark backgrounds.
COLOURS = {"forward": "#3b82f6", "backward": "#e5484d", "optimizer": "#30a46c"}
#: Colours of operators in a comparison of values.
COMPARED = {"same": "#30a46c", "differs": "#e5484d", "not compared": "#88929e"}

#: Style name -> style of the rich library.
STYLES = {
    "": "", "dim": "dim", "bold": "bold", "warn": "bold #d97706", "name": "bold", "location": "dim italic",
    **{role: f"bold {colour}" for role, colour in {**COLOURS, **COMPARED}.items()},
}  # fmt: skip


def mixed(colour: str) -> str:
    """CSS of a colour mixed with the text colour, for contrast on light and dark backgrounds."""
    return f"color-mix(in srgb,{colour} 50%,currentColor)"


def legible(colour: str) -> str:
    """SVG attributes of text in a colour, see `mixed`."""
    return f'fill="{colour}" style="fill:{mixed(colour)}"'


def width(line: Line) -> int:
    """Columns that a line takes in a terminal."""
    return sum(text_width(text) for text, _ in line)


def cut(line: Line, size: int) -> Line:
    """Cuts a line to a number of columns and adds an ellipsis."""
    if width(line) <= size:
        return line
    out: Line = []
    left = max(size - 1, 0)
    for text, style in line:
        out.append((beginning(text, left), style))
        left -= text_width(text)
        if left <= 0:
            break
    return [*out, ("…", "dim")]


def cut_text(text: str, size: int) -> str:
    """Cuts a text to a number of columns, at least one, and adds an ellipsis."""
    return text if text_width(text) <= size else beginning(text, size - 1) + "…"


def columns(rows: Iterable[list[Line]], limit: int = 0, gap: int = 2, keep: int = 0) -> list[Line]:
    """Aligns rows of cells in columns; a row of one cell takes no part in the widths.

    With a limit the widest column is cut first, except the first ``keep`` ones; cells extend over empty neighbours.
    """
    rows = list(rows)
    table = [row for row in rows if len(row) > 1]
    count = max((len(row) for row in table), default=0)
    sizes = [max((width(row[i]) for row in table if i < len(row)), default=0) for i in range(count)]
    least = 0 if keep else 12
    for i in sorted(range(keep, count), key=lambda i: -sizes[i]) if limit else ():
        over = sum(sizes) + gap * (count - 1) - limit
        sizes[i] = max(sizes[i] - over, min(sizes[i], least)) if over > 0 else sizes[i]
    lines = []
    for row in rows:
        if len(row) == 1:
            lines.append(cut(row[0], limit) if limit else row[0])
            continue
        line: Line = []
        end = next((i for i in range(len(row), 0, -1) if width(row[i - 1])), 0)  # all cells from here are empty
        for i, (cell, size) in enumerate(zip(row, sizes, strict=False)):
            available = sum(sizes[i:]) + gap * (len(sizes) - 1 - i) if i == end - 1 else size
            cell = cut(cell, available) if available else []
            line += [*cell, (" " * (max(size - width(cell), 0) + gap), "")]
        while line and not line[-1][0].strip():
            line.pop()
        if line:
            line[-1] = (line[-1][0].rstrip(), line[-1][1])
        lines.append(line)
    return lines


def plain(lines: Iterable[Line]) -> str:
    """Lines as plain text."""
    return visible("\n".join("".join(text for text, _ in line) for line in lines))


def rich_text(lines: Iterable[Line]) -> Text:
    """Lines as one rich Text."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis", end="")
    for i, line in enumerate(lines):
        if i:
            text.append("\n")
        for piece, style in line:
            text.append(visible(piece), STYLES[style] or None)
    return text


def ansi(lines: Iterable[Line], columns: int = 100) -> str:
    """Lines with terminal colour codes, cut to a number of columns; without the package rich, without colours."""
    if not is_installed("rich"):
        return plain(cut(line, columns) for line in lines)
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, force_terminal=True, color_system="256", width=columns, legacy_windows=False).print(
        rich_text(lines)
    )
    return out.getvalue().rstrip("\n")


#: Default columns of a line.
WIDE = 110


def wrapped(lines: Iterable[Line], size: int = 0) -> list[Line]:
    """Wraps lines between words; continuation lines are indented."""
    out: list[Line] = []
    for line in lines:
        text = "".join(piece for piece, _ in line)
        inset = " " * (len(text) - len(text.lstrip()) + 2)
        current: Line = []
        for piece, style in line:
            for word in re.findall(r"\s+|\S+", piece):
                if width(current) + text_width(word) > (size or WIDE) and not word.isspace() and current:
                    out.append(current)
                    current = [(inset, "")]
                current.append((word, style))
        out.append(current)
    return [cut(_joined(line), size or WIDE) for line in out]


def _joined(line: Line) -> Line:
    """Merges neighbours of one style and strips blanks at the end."""
    while line and not line[-1][0].strip():
        line = line[:-1]
    return [("".join(text for text, _ in group), style) for style, group in groupby(line, key=lambda piece: piece[1])]


def plural(count: int, what: str, ending: str = "s") -> str:
    """A count with its noun.

    Example:
        >>> plural(1, "op"), plural(12, "op")
        ('1 op', '12 ops')
    """
    return f"{count:,} {what}{ending if count != 1 else ''}"
