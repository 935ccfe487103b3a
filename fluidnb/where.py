"""Source location in user code: file, line, function, and the notebook cell."""

from __future__ import annotations

import linecache
import sys
import warnings
from dataclasses import dataclass
from types import FrameType
from typing import Any

#: Packages whose frames are never the user's own.
_INTERNAL = (
    "fluidnb", "fluidnb_kernels", "fluidnb_magics", "importlib", "runpy", "IPython", "contextlib", "threading",
    "concurrent", "cmd",
)  # fmt: skip

#: Code that ``%time`` and its like run for a line of the user's; the line is further out.
_TIMED = ("<timed exec>", "<timed eval>", "<magic-timeit>")

#: Cell file name (as the interpreter knows it) -> the name under which users know the cell.
cell_names: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the user's code.

    Args:
        file: file name as the interpreter knows it; a notebook cell has a made-up one.
        line: line number, from 1.
        function: name of the enclosing function, ``<module>`` at top level.
        cell: name of the notebook cell, or None outside notebooks.

    Example:
        >>> Where("train.py", 12, "<module>", None).short()
        'train.py:12'
        >>> Where("<fluid net>", 3, "<module>", "net").short()
        'cell net, line 3'
    """

    file: str
    line: int
    function: str
    cell: str | None = None

    @property
    def source(self) -> str:
        """The text of the line, without indentation; empty when it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def short(self) -> str:
        """One phrase that names the place: ``cell net, line 3`` or ``train.py:12``."""
        if self.cell is not None:
            return f"cell {self.cell}, line {self.line}"
        return f"{self.file.rsplit('/', 1)[-1]}:{self.line}"


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame that is not this project's own nor the shell's.

    Args:
        depth: how many frames to skip before looking, the caller's being 0.

    Returns:
        The frame, or None when there is none (a bare interpreter start, an example in a docstring of ours).

    Example:
        >>> frame = user_frame()
    """
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if frame.f_code.co_filename in cell_names:
            return frame
        name = frame.f_globals.get("__name__", "").partition(".")[0]
        if name == "doctest":  # an example in our own documentation
            return None
        if name not in _INTERNAL and frame.f_code.co_filename not in _TIMED:
            return frame
        frame = frame.f_back
    return None


def capture(depth: int = 1) -> Where | None:
    """The place in the user's code from which this call came.

    Args:
        depth: how many frames to skip before looking, the caller's being 0.

    Returns:
        A `Where`, or None when no user code is on the stack.

    Example:
        >>> place = capture()
    """
    frame = user_frame(depth + 1)
    if frame is None:
        return None
    code = frame.f_code
    file = code.co_filename
    return Where(file, frame.f_lineno, code.co_name, cell_names.get(file) or _cell(file))


def _cell(file: str) -> str | None:
    """The prompt of an ordinary cell, which its shell compiles under a made-up file name; None for a real file."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return None if number is None else f"In[{number}]"


def warn(message: str) -> None:
    """Give a warning that points to the user's line.

    Args:
        message: one or two sentences.

    Example:
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always"); warn("Look here.")
        >>> str(caught[0].message)
        'Look here.'
    """
    place = capture()
    if place is None:
        warnings.warn(message, stacklevel=2)
    else:
        warnings.warn_explicit(message, UserWarning, place.file, place.line)
