"""What lessons share: programs of their own, so that nothing of the user's changes, and steps as pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from fluidnb.errors import FluidError
from fluidnb.program import Program, program_guard, unique_name
from fluidnb.visible import escape
from fluidnb.viz.html import CSS
from fluidnb.viz.spans import Line, cut, width
from fluidnb.viz.svg import FONT

#: Characters of a line where nothing limits it.
WIDE = 110


@contextmanager
def apart() -> Iterator[tuple[Program, Program]]:
    """Build in programs of a lesson: new ones, with names of their own.

    Errors show no line of the user's, who wrote none of these programs.

    Yields:
        The main and the startup program.

    Example:
        >>> with apart() as (main, startup):
        ...     x = fluid.layers.data("x", [1])
        >>> main is fluid.default_main_program()
        False
    """
    main, startup = Program(), Program()
    try:
        with unique_name.guard(), program_guard(main, startup):
            yield main, startup
    except FluidError as error:
        error.where = None
        raise


def within(step: int, count: int) -> int:
    """The step nearest to a wanted one that there is.

    Args:
        step: what is wanted; a negative one counts from the end.
        count: how many there are.

    Returns:
        From 0; also 0 when there are none.

    Example:
        >>> within(9, 4), within(-1, 4), within(0, 0)
        (3, 3, 0)
    """
    return max(0, min(step + count if step < 0 else step, count - 1))


def caption(term: str, words: str) -> str:
    """A thing that is shown and what it means, as HTML.

    Args:
        term: what it is called.
        words: one or two sentences.

    Returns:
        One element.

    Example:
        >>> caption("offsets", "Where sequences begin.").count("<b>offsets</b>")
        1
    """
    return f'<div style="max-width:62em;margin:3px 0"><b>{escape(term)}</b>  {escape(words)}</div>'


def table_html(rows: Sequence[Sequence[Line]], head: Sequence[str] = ()) -> str:
    """Rows of cells of styled text as an HTML table.

    Args:
        rows: cells of each row.
        head: titles of the columns.

    Returns:
        One element.

    Example:
        >>> table_html([[[("a", "name")], [("<1", "")]]]).count("<td"), "&lt;1" in table_html([[[("<1", "")]]])
        (2, True)
    """
    return cells_html([[pieces_html(cell) for cell in row] for row in rows], head)


def cells_html(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Rows of cells that are HTML already as a table.

    Args:
        rows: cells of each row.
        head: titles of the columns.

    Returns:
        One element.

    Example:
        >>> cells_html([["<b>a</b>"]], ["name"]).count("<th")
        1
    """
    css = "text-align:left;vertical-align:top;padding:1px 14px 1px 0;white-space:nowrap;border:0"
    lines = ["".join(f'<th style="{css};opacity:.6;font-weight:400">{escape(title)}</th>' for title in head)]
    lines += ["".join(f'<td style="{css}">{cell}</td>' for cell in row) for row in rows]
    body = "".join(f'<tr style="background:none">{line}</tr>' for line in lines if line)
    font = f"font-family:{escape(FONT)};font-size:12px"
    return f'<table style="border-collapse:collapse;border:0;margin:4px 0;color:inherit;{font}">{body}</table>'


def wrapped(lines: Iterable[Line], size: int = 0) -> list[Line]:
    """Lines of text that are not too long, broken between words.

    Args:
        lines: the lines.
        size: characters a line may have; 0 for 110.

    Returns:
        The lines; those that go on are set in.

    Example:
        >>> from fluidnb.viz import plain
        >>> print(plain(wrapped([[("  one two", "bold"), (" three", "")]], 10)))
          one two
            three
    """
    out: list[Line] = []
    for line in lines:
        text = "".join(piece for piece, _ in line)
        inset = " " * (len(text) - len(text.lstrip()) + 2)
        now: Line = []
        for piece, style in line:
            for word in re.findall(r"\s+|\S+", piece):
                if width(now) + len(word) > (size or WIDE) and not word.isspace() and now:
                    out.append(now)
                    now = [(inset, "")]
                now.append((word, style))
        out.append(now)
    return [cut(_joined(line), size or WIDE) for line in out]


def _joined(line: Line) -> Line:
    """Neighbours of one style as one piece, without blanks at the end."""
    while line and not line[-1][0].strip():
        line = line[:-1]
    return [("".join(text for text, _ in group), style) for style, group in groupby(line, key=lambda piece: piece[1])]


def wrapped_html(lines: Sequence[Line]) -> str:
    """Lines of styled text as HTML, broken where the page ends.

    Args:
        lines: the lines.

    Returns:
        One element.

    Example:
        >>> wrapped_html([[("a", "")], [("b", "name")]]).count("</div>")
        3
    """
    font = f"font-family:{escape(FONT)};font-size:12px;line-height:1.45"
    css = "white-space:pre-wrap;overflow-wrap:anywhere;padding-left:2em;text-indent:-2em"
    return f'<div style="{font}">{"".join(f"""<div style="{css}">{pieces_html(line)}</div>""" for line in lines)}</div>'


def pieces_html(line: Line) -> str:
    """A line of styled text as HTML."""
    return "".join(
        f'<span style="{CSS[style]}">{escape(text)}</span>' if style else escape(text) for text, style in line
    )
