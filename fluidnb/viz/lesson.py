"""What lessons share: programs of their own, so that nothing of the user's changes, and steps as pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape

from fluidnb.errors import FluidError
from fluidnb.program import Program, program_guard, unique_name
from fluidnb.viz.html import CSS
from fluidnb.viz.spans import Line
from fluidnb.viz.svg import FONT


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
