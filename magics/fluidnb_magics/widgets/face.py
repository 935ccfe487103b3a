"""What widgets share: their files, how they hear the page and tell it of mistakes, what is left without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
from IPython.display import display

from fluidnb.errors import FluidError
from fluidnb.viz import lines_html, plain
from fluidnb.viz.spans import Line
from fluidnb_magics.kernel_private import answer_anywhere
from fluidnb_magics.showing import show

_STATIC = Path(__file__).parent / "static"


def script(name: str) -> str:
    """The script of a widget: what all share, then its own.

    Args:
        name: the file in ``static/``, without its ending.

    Returns:
        One JavaScript module.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return _read("shared.js") + "\n" + _read(f"{name}.js")


def style(name: str) -> str:
    """The style of a widget: what all share, then its own.

    Args:
        name: the file in ``static/``, without its ending.

    Returns:
        CSS.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return _read("shared.css") + "\n" + _read(f"{name}.css")


class Face(anywidget.AnyWidget):
    """A widget whose page sends commands: ``{"do": name, ...}`` calls ``do_name(...)``.

    What a command raises is told in the page and changes nothing else. A subclass gives ``_esm`` and ``_css`` with
    `script` and `style`, and `lines`.
    """

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.on_msg(self._hear)
        answer_anywhere(self)

    def lines(self) -> Sequence[Line]:
        """The text face of what the widget shows; it is also what is left when the kernel is gone."""
        return ()

    def html(self) -> str:
        """The HTML face of what the widget shows, where no widgets can be shown."""
        return lines_html(self.lines())

    def tell(self, problem: str) -> None:
        """Show a sentence in the widget's own bar.

        Args:
            problem: what is wrong.
        """
        self.send({"problem": problem})

    def _hear(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        answer_anywhere(self)
        asked = dict(content)
        command: Callable[..., Any] | None = getattr(self, f"do_{asked.pop('do', '')}", None)
        if command is None:
            return
        try:
            command(**asked)
        except (FluidError, ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError) as error:
            self.tell(str(error) or type(error).__name__)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**bundle, "text/plain": plain(self.lines()), "text/html": self.html()}, metadata


def show_face(shell: Any, face: Face) -> None:
    """Show a widget, or in a terminal its text face.

    Args:
        shell: the IPython shell.
        face: the widget.
    """
    if getattr(shell, "kernel", None) is None:
        show(shell, face.lines())
    else:
        display(face)
        answer_anywhere(face)


def _read(name: str) -> str:
    return (_STATIC / name).read_text("utf-8")
