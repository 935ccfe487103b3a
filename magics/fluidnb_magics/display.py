"""Display of pictures through the shell: colours in a terminal, HTML in a notebook, plain text everywhere."""

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

from IPython.display import display

from fluidnb.viz import Picture
from fluidnb.viz.base import display_target
from fluidnb.viz.base.styled_text import Line


def show(
    shell: Any, lines: Sequence[Line], html: Callable[[], str] | None = None, svg: Callable[[], str] | None = None
) -> None:
    """Display lines once; ``html`` renders them as HTML in another way, ``svg`` as an image."""
    display(Picture(lines, html, width(shell), svg))


def show_widget(shell: Any, widget: Any) -> None:
    """Show a widget; in a terminal its text rendering, once."""
    if getattr(shell, "kernel", None) is None:
        show(shell, widget.lines())
        widget.close()
    else:
        widget.show()


def width(shell: Any) -> int:
    """The width of the shell's terminal in characters; 0 in a notebook, and where stdout is no terminal."""
    coloured = sys.stdout.isatty() and shell.colors.lower() != "nocolor"
    return shutil.get_terminal_size().columns if coloured and getattr(shell, "kernel", None) is None else 0


def is_watched(shell: Any) -> bool:
    """Whether a front end displays the notebook; False in a terminal, and where a tool executes one."""
    kernel = getattr(shell, "kernel", None)
    return kernel is not None and display_target.is_watched(kernel)
