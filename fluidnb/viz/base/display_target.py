"""Targets of a live display: a notebook cell, a terminal line, or a plain stream."""

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, Protocol, TextIO

Render = Callable[[], str]


class DisplayTarget(Protocol):
    """Target of a live display; ``line`` writes permanent lines above it."""

    def line(self, text: str) -> None:
        """Writes a permanent line."""

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Replaces the displayed state."""


class Plain:
    """A stream that cannot overwrite: gets permanent lines and the final state."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str) -> None:
        """Writes a permanent line."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Writes the last state."""
        if last:
            self._stream.write(text() + "\n")


class Terminal(Plain):
    """One terminal line that is overwritten; the last one remains."""

    def line(self, text: str) -> None:
        """Writes it above the display."""
        super().line("\r\x1b[K" + text)

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Overwrites the line."""
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r\x1b[K" + text()[:width] + ("\n" if last else ""))
        self._stream.flush()


class Notebook:
    """The output of a notebook cell, replaced with each state."""

    def __init__(self, rich: bool) -> None:
        self._rich = rich
        self._handle: Any = None
        self._lines: list[str] = []  # for the text rendering; the HTML contains them already

    def line(self, text: str) -> None:
        """Keeps it for the text rendering."""
        self._lines.append(text)

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Displays the first state and replaces it with later ones."""
        bundle = {"text/plain": "\n".join([*self._lines, text()])}
        if self._rich:
            bundle["text/html"] = html()
        if self._handle is None:
            from IPython.display import display

            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def find_display_target() -> DisplayTarget:
    """The display target of the running process."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        return Notebook(is_watched(kernel))
    if sys.stdout.isatty():
        return Terminal(sys.stdout)
    return Plain(sys.stdout)


def is_watched(kernel: Any) -> bool:
    """Whether a front end announces the running cell; tools that only execute notebooks do not."""
    parent = kernel.get_parent() or {}
    return bool(parent.get("metadata", {}).get("cellId")) or "COLAB_RELEASE_TAG" in os.environ
