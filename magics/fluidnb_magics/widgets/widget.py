"""Base class of widgets: files, messages from the page, error reports, static fallbacks."""

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from IPython.display import display

from fluidnb.errors import FluidError
from fluidnb.viz import lines_html, plain
from fluidnb.viz.base.static_files import SHARED, read_static
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.jupyter.kernel_private import answer_anywhere

_STATIC = Path(__file__).parent / "static"


def script(*names: str) -> str:
    """The script of a widget, of files without their ending: ``shared``, then these.

    They are in ``static/``, or in ``fluidnb/viz/static/`` where saved pages use them too.
    """
    return "\n".join(read_static(f"{name}.js", (_STATIC, SHARED)) for name in ("shared", *names))


def style(*names: str) -> str:
    """The style of a widget, of files in the same folders without their ending: ``shared``, then these."""
    return "\n".join(read_static(f"{name}.css", (_STATIC, SHARED)) for name in ("shared", *names))


class NotebookWidget(anywidget.AnyWidget):
    """A widget whose page sends commands: ``{"do": name, ...}`` calls ``do_name(...)``."""

    # the model's id; it also marks the static rendering beside the widget, which the page hides
    widget_id = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(widget_id=uuid.uuid4().hex, **traits)
        self.widget_id = self.model_id or self.widget_id  # so that the page finds the model
        self._static_output: Any = None
        self.handlers: tuple[object, ...] = (self,)  # the objects whose ``do_...`` methods the page may call
        self.on_msg(self._on_message)
        answer_anywhere(self)

    def lines(self) -> Sequence[Line]:
        """The text rendering of the widget; also the fallback without a kernel."""
        return ()

    def html(self) -> str:
        """The HTML rendering of the widget, for front ends without widgets."""
        return lines_html(self.lines())

    def report(self, problem: str) -> None:
        """Show a sentence in the widget's own bar."""
        self.send({"problem": problem})

    def _on_message(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        arguments = dict(content)
        if (number := arguments.pop("request", None)) is not None:  # the page measures whether the kernel responds
            self.send({"response": number})
        self.handle(arguments)

    def handle(self, request: dict[str, Any]) -> None:
        """Handle a command of the page; what goes wrong is reported there."""
        arguments = dict(request)
        name = f"do_{arguments.pop('do', '')}"
        command: Callable[..., Any] | None = next((getattr(h, name) for h in self.handlers if hasattr(h, name)), None)
        if command is None:
            return
        try:
            command(**arguments)
        except (FluidError, ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError) as error:
            self.report(str(error) or type(error).__name__)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**bundle, **self.static()}, metadata

    def static(self) -> dict[str, str]:
        """The static renderings: fallbacks for front ends without widgets, and without a kernel."""
        return {"text/plain": plain(self.lines()), "text/html": self.html()}

    def show(self) -> None:
        """Show the widget and its static rendering: a front end that opens the notebook again without its kernel
        prints only that the widget is missing.
        """
        bundle, metadata = super()._repr_mimebundle_() or ({}, {})
        display({**bundle, "text/plain": ""}, raw=True, metadata=metadata)
        self._static_output = display(self._marked(), raw=True, display_id=self.widget_id)

    def update_static(self) -> None:
        """Updates the static rendering beside the widget."""
        if self._static_output is not None:
            self._static_output.update(self._marked(), raw=True)

    def _marked(self) -> dict[str, str]:
        """The static renderings, with a mark by which the page hides them beside a widget, and a rule that hides the
        output before, where other front ends print that a widget is missing.
        """
        static = self.static()
        mark = f'data-fluidnb-static="{self.widget_id}"'
        gone = f".jp-OutputArea-child:has(+ .jp-OutputArea-child [{mark}]):not(:has(.fluidnb-widget))"
        html = f"<div {mark}><style>{gone} {{ display: none; }}</style>{static['text/html']}</div>"
        return {**static, "text/html": html}
