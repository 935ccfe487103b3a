"""Base class of widgets: files, messages from the page, error reports, static fallbacks."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from IPython.display import display

from fluidnb.errors import FluidError
from fluidnb.viz import lines_html, plain
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.display import show
from fluidnb_magics.jupyter.kernel_private import answer_anywhere

_STATIC = Path(__file__).parent / "static"


def script(*names: str) -> str:
    """The script of a widget: what all share, what some share, then its own.

    Args:
        names: files in ``static/``, without their ending; the widget's own one is the last.

    Returns:
        One JavaScript module.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return "\n".join(_read(f"{name}.js") for name in ("shared", *names))


def style(*names: str) -> str:
    """The style of a widget: what all share, what some share, then its own.

    Args:
        names: files in ``static/``, without their ending; the widget's own one is the last.

    Returns:
        CSS.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return "\n".join(_read(f"{name}.css") for name in ("shared", *names))


class NotebookWidget(anywidget.AnyWidget):
    """A widget whose page sends commands: ``{"do": name, ...}`` calls ``do_name(...)``.

    What a command raises is told in the page and changes nothing else. A subclass gives ``_esm`` and ``_css`` with
    `script` and `style`, and `lines`.

    Attributes:
        handlers: the objects whose ``do_...`` methods the page may call: the widget, and those that it is composed of.
        face_id: the model's id; it also marks the static rendering beside the widget, which the page hides.
    """

    face_id = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(face_id=uuid.uuid4().hex, **traits)
        self.face_id = self.model_id or self.face_id  # so that the page finds the model
        self._still: Any = None
        self.handlers: tuple[object, ...] = (self,)
        self.on_msg(self._hear)
        answer_anywhere(self)

    def lines(self) -> Sequence[Line]:
        """The text rendering of the widget; also the fallback without a kernel."""
        return ()

    def html(self) -> str:
        """The HTML rendering of the widget, for front ends without widgets."""
        return lines_html(self.lines())

    def tell(self, problem: str) -> None:
        """Show a sentence in the widget's own bar.

        Args:
            problem: what is wrong.
        """
        self.send({"problem": problem})

    def send(self, content: Any, buffers: Any = None) -> None:
        """Send the page a message; it may answer while a cell is still running.

        Args:
            content: the message.
            buffers: bytes that go with it.
        """
        super().send(content, buffers)
        answer_anywhere(self)

    def send_state(self, key: Any = None) -> None:
        """Send the page traits; it may answer while a cell is still running.

        Args:
            key: names of traits; None for all.
        """
        super().send_state(key)
        answer_anywhere(self)

    def _hear(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        answer_anywhere(self)
        asked = dict(content)
        if (number := asked.pop("asked", None)) is not None:  # the page wants to know that it is heard
            self.send({"heard": number})
        name = f"do_{asked.pop('do', '')}"
        command: Callable[..., Any] | None = next((getattr(h, name) for h in self.handlers if hasattr(h, name)), None)
        if command is None:
            return
        try:
            command(**asked)
        except (FluidError, ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError) as error:
            self.tell(str(error) or type(error).__name__)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**bundle, **self.still()}, metadata

    def still(self) -> dict[str, str]:
        """The static renderings: fallbacks for front ends without widgets, and without a kernel.

        Returns:
            MIME type -> text.
        """
        return {"text/plain": plain(self.lines()), "text/html": self.html()}

    def show(self) -> None:
        """Shows the widget and its static rendering: front ends that open the notebook again without its kernel
        say of the widget only that it is gone."""
        bundle, metadata = super()._repr_mimebundle_() or ({}, {})
        display({**bundle, "text/plain": ""}, raw=True, metadata=metadata)
        self._still = display(self._marked(), raw=True, display_id=self.face_id)
        answer_anywhere(self)

    def renew_still(self) -> None:
        """Updates the static rendering beside the widget."""
        if self._still is not None:
            self._still.update(self._marked(), raw=True)

    def _marked(self) -> dict[str, str]:
        """The static renderings, with a mark by which the page hides them beside a widget, and a rule for others:
        what the front end says of a widget that is gone, in the output before, is hidden."""
        faces = self.still()
        mark = f'data-fluidnb-face="{self.face_id}"'
        gone = f".jp-OutputArea-child:has(+ .jp-OutputArea-child [{mark}]):not(:has(.fluidnb-widget))"
        html = f"<div {mark}><style>{gone} {{ display: none; }}</style>{faces['text/html']}</div>"
        return {**faces, "text/html": html}


def show_face(shell: Any, face: NotebookWidget) -> None:
    """Shows a widget, or in a terminal its text rendering.

    Args:
        shell: the IPython shell.
        face: the widget.
    """
    if getattr(shell, "kernel", None) is None:
        show(shell, face.lines())
    else:
        face.show()


def _read(name: str) -> str:
    return (_STATIC / name).read_text("utf-8")
