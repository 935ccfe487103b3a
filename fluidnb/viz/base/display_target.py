"""Where a display that changes can be shown: a notebook, a terminal, or a stream that nobody watches."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, Protocol, TextIO

Render = Callable[[], str]


class DisplayTarget(Protocol):
    """A place for a display that changes.

    `show` gets the makers of both faces and calls the one it needs; ``last`` marks the final state. `line` gets what
    stays: the display goes on below it.
    """

    def line(self, text: str) -> None:
        """Write a line that stays."""

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Show a state in place of the one before."""


class NoDisplay:
    """Shows nothing."""

    def line(self, text: str) -> None:
        """Do nothing."""

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Do nothing."""


class Terminal:
    """One line of a terminal, written over and over.

    Args:
        stream: the terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str) -> None:
        """Write it in place of the display, which is shown again below."""
        self._stream.write("\r\x1b[K" + text + "\n")
        self._stream.flush()

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Write the line over the one before; the last one stays."""
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r\x1b[K" + text()[:width] + ("\n" if last else ""))
        self._stream.flush()


class Plain:
    """A stream that keeps everything: only the final state is written, and the lines that stay, at once.

    Args:
        stream: the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str) -> None:
        """Write it."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Write the last state."""
        if last:
            self._stream.write(text() + "\n")


class Notebook:
    """The output of a notebook cell, replaced with each state.

    Args:
        rich: whether somebody looks, so that HTML is worth making; plain text otherwise.
    """

    def __init__(self, rich: bool) -> None:
        self._rich = rich
        self._handle: Any = None
        self._lines: list[str] = []

    def line(self, text: str) -> None:
        """Keep it for the text of the display; the HTML has it already."""
        self._lines.append(text)

    def show(self, text: Render, html: Render, last: bool) -> None:
        """Display the first state, replace it with the next ones."""
        bundle = {"text/plain": "\n".join([*self._lines, text()])}
        if self._rich:
            bundle["text/html"] = html()
        if self._handle is None:
            from IPython.display import display

            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def find_display_target() -> DisplayTarget:
    """The outlet for whoever runs this code.

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
    """Whether a front end says which cell runs, as tools that only execute notebooks do not."""
    parent = kernel.get_parent() or {}
    return bool(parent.get("metadata", {}).get("cellId")) or "COLAB_RELEASE_TAG" in os.environ
