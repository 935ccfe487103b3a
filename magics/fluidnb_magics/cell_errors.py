"""Errors of a cell as the user sees them: a few lines about the cell, none about our own code."""

from types import TracebackType
from typing import Any

from fluidnb.errors import FluidError
from fluidnb.utils.source_location import cell_names

_INTERNAL = ("fluidnb", "fluidnb_kernels", "fluidnb_magics", "IPython", "ipykernel", "traitlets")


class CellSyntaxError(FluidError):
    """A cell that is not Python; shown as the shell shows syntax errors, without a stack."""

    def __init__(self, error: SyntaxError, lines: list[str]) -> None:
        super().__init__(str(error))
        self._lines = lines

    def _render_traceback_(self) -> list[str]:
        return self._lines


def shorten(shell: Any, error: BaseException) -> BaseException:
    """An error that shows only the user's own frames; a `CellSyntaxError` in place of a SyntaxError."""
    frames = user_frames(error.__traceback__)
    if isinstance(error, SyntaxError):
        return CellSyntaxError(error, shell.SyntaxTB.structured_traceback(type(error), error, []))
    if isinstance(error, FluidError):
        place = error.where
        if place is not None and place.file not in cell_names and place.source.startswith("get_ipython().run_"):
            error.where = None  # the magic itself, as the shell rewrites it: nothing that the user wrote
        lines = [*error._render_traceback_(), *getattr(error, "__notes__", ())]
    elif isinstance(error, KeyboardInterrupt):  # the line in our code is no information; its notes name the operator
        lines = [f"KeyboardInterrupt: {error}".rstrip(": "), *getattr(error, "__notes__", ())]
    else:
        lines = shell.InteractiveTB.structured_traceback(type(error), error, frames, tb_offset=0)
    error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
    return error


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """A new traceback of the user's own frames, from the cell on; None without any."""
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    first = next((i for i, t in enumerate(entries) if t.tb_frame.f_code.co_filename in cell_names), 0)
    kept: TracebackType | None = None
    for entry in reversed(entries[first:]):
        if not _is_internal(entry):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def _is_internal(entry: TracebackType) -> bool:
    frame = entry.tb_frame
    if frame.f_code.co_filename in cell_names:
        return False
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INTERNAL
