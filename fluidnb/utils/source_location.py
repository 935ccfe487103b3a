"""Source location in user code: file, line, function, and the notebook cell."""

import linecache
import sys
import warnings
from types import FrameType
from typing import Any, NamedTuple

#: Packages whose frames are never the user's own.
_INTERNAL = (
    "fluidnb", "fluidnb_kernels", "fluidnb_magics", "importlib", "runpy", "IPython", "contextlib", "threading",
    "concurrent", "cmd", "numpy",
)  # fmt: skip

#: Module -> whether it is of one of these packages.
_modules: dict[str, bool] = {}
#: The files of these packages that frames were seen of: a call of a layer is ten frames away from the user's.
_files: set[str] = set()
#: Code that ``%time`` and its like run for a line of the user's; the line is further out.
_TIMED = ("<timed exec>", "<timed eval>", "<magic-timeit>")
#: File, line, function and cell -> the location: a layer has several operators, and a loop many layers.
_places: dict[tuple[str, int, str, str | None], "SourceLocation"] = {}
_MOST = 4096
#: Cell file name (as the interpreter knows it) -> the name under which users know the cell.
cell_names: dict[str, str] = {}


class SourceLocation(NamedTuple):
    """A place in the user's code."""

    file: str  # file name as the interpreter knows it; a notebook cell has a made-up one
    line: int  # line number, from 1
    function: str  # name of the enclosing function, ``<module>`` at top level
    cell: str | None = None  # name of the notebook cell, or None outside notebooks

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
    """The innermost frame that is not this project's own nor the shell's; None when there is none."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        if file in _files:
            frame = frame.f_back
            continue
        if file in cell_names:
            return frame
        module = frame.f_globals.get("__name__", "")
        if module == "doctest":  # an example in our own documentation
            return None
        internal = _modules.get(module)
        if internal is None:
            internal = _modules[module] = module.partition(".")[0] in _INTERNAL
        if not internal and file not in _TIMED:
            return frame
        if internal and file.endswith(".py"):
            _files.add(file)
        frame = frame.f_back
    return None


def capture(depth: int = 1) -> SourceLocation | None:
    """The place in the user's code from which this call came."""
    frame = user_frame(depth + 1)
    if frame is None:
        return None
    code = frame.f_code
    file = code.co_filename
    key = file, frame.f_lineno, code.co_name, cell_names.get(file)
    place = _places.get(key)
    if place is None:
        if len(_places) >= _MOST:
            _places.clear()
        place = _places[key] = SourceLocation(*key[:3], key[3] or _cell(file))
    return place


def _cell(file: str) -> str | None:
    """The prompt of an ordinary cell, which its shell compiles under a made-up file name; None for a real file."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return None if number is None else f"In[{number}]"


def warn(message: str) -> None:
    """Give a warning that points to the user's line."""
    place = capture()
    if place is None:
        warnings.warn(message, stacklevel=2)
    else:
        warnings.warn_explicit(message, UserWarning, place.file, place.line)
