"""Targets of a live display: a notebook cell, a terminal line, or a plain stream."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, Protocol, TextIO

Render = Callable[[], str]


class DisplayTarget(Protocol):
    """Target of a live display.

    `show` gets functions that create both renderings and calls the one it needs; ``last`` marks the final state.
    `line` writes permanent lines above the display.
    """

    def line(self, text: str) -> None:
        """Writes a permanent line."""

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Replaces the displayed state."""


class NoDisplay:
    """Shows nothing."""

    def line(self, text: str) -> None:
        """Do nothing."""

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Do nothing."""


class Terminal:
    """One terminal line that is overwritten.

    Args:
        stream: the terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str) -> None:
        """Writes it above the display."""
        self._stream.write("\r\x1b[K" + text + "\n")
        self._stream.flush()

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Overwrites the line; the last one remains."""
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r\x1b[K" + text()[:width] + ("\n" if last else ""))
        self._stream.flush()


class Plain:
    """A stream that cannot overwrite: gets permanent lines and the final state.

    Args:
        stream: the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str) -> None:
        """Writes it."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Writes the last state."""
        if last:
            self._stream.write(text() + "\n")


class Notebook:
    """The output of a notebook cell, replaced with each state.

    Args:
        rich: whether to send HTML too.
    """

    def __init__(self, rich: bool) -> None:
        self._rich = rich
        self._handle: Any = None
        self._lines: list[str] = []

    def line(self, text: str) -> None:
        """Keeps it for the text rendering; the HTML contains it already."""
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
    """The display target of the running process.

    Example:
        >>> type(find_display_target()).__name__
        'Plain'
    """
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
