"""Display objects: text for terminals, HTML for notebooks."""

from collections.abc import Callable, Sequence
from typing import Any

from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import Line, ansi, plain


class Picture:
    """A display object with a text and an HTML rendering, and an SVG for viewers that show no HTML.

    Example:
        >>> print(Picture([[("x", "name"), ("  int64[3]", "")]]))
        x  int64[3]
    """

    def __init__(
        self, lines: Sequence[Line], html: Callable[[], str] | None = None, coloured: int = 0,
        svg: Callable[[], str] | None = None,
    ) -> None:  # fmt: skip
        self.lines = list(lines)
        self.coloured = coloured
        self._html, self._svg = html, svg

    def __str__(self) -> str:
        return plain(self.lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return lines_html(self.lines) if self._html is None else self._html()

    def _repr_svg_(self) -> str | None:
        return None if self._svg is None else self._svg()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(ansi(self.lines, self.coloured) if self.coloured else plain(self.lines))

    def __rich__(self) -> Any:
        from fluidnb.viz.base.styled_text import rich_text

        return rich_text(self.lines)
