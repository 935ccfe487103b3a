"""Errors of a cell as the user sees them: a few lines about the cell, none about our own code."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from fluidnb import where
from fluidnb.errors import FluidError

_INTERNAL = ("fluidnb", "fluidnb_kernels", "fluidnb_magics", "IPython", "ipykernel", "traitlets")


class CellSyntaxError(FluidError):
    """A cell that is not Python; shown as the shell shows syntax errors, without a stack.

    Args:
        error: the SyntaxError.
        lines: how the shell shows it.
    """

    def __init__(self, error: SyntaxError, lines: list[str]) -> None:
        super().__init__(str(error))
        self._lines = lines

    def _render_traceback_(self) -> list[str]:
        return self._lines


def shorten(shell: Any, error: BaseException) -> BaseException:
    """Make an error show only the user's own frames.

    Args:
        shell: the IPython shell, which knows how to draw a traceback.
        error: what a cell raised.

    Returns:
        The error to raise: the same one, or a `CellSyntaxError` in place of a SyntaxError.
    """
    frames = user_frames(error.__traceback__)
    if isinstance(error, SyntaxError):
        return CellSyntaxError(error, shell.SyntaxTB.structured_traceback(type(error), error, []))
    if isinstance(error, FluidError):
        place = error.where
        if place is not None and place.file not in where.cell_names and place.source.startswith("get_ipython().run_"):
            error.where = None  # the magic itself, as the shell rewrites it: nothing that the user wrote
        lines = [*error._render_traceback_(), *getattr(error, "__notes__", ())]
    elif isinstance(error, KeyboardInterrupt):  # where in our code it came says nothing; its notes name the operator
        lines = [f"KeyboardInterrupt: {error}".rstrip(": "), *getattr(error, "__notes__", ())]
    else:
        lines = shell.InteractiveTB.structured_traceback(type(error), error, frames, tb_offset=0)
    error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
    return error


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that is the user's: from the cell on, without our frames and the shell's.

    Args:
        traceback: the whole.

    Returns:
        A new traceback, or None when no frame is the user's.
    """
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    first = next((i for i, t in enumerate(entries) if t.tb_frame.f_code.co_filename in where.cell_names), 0)
    kept: TracebackType | None = None
    for entry in reversed(entries[first:]):
        if not _is_internal(entry):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def _is_internal(entry: TracebackType) -> bool:
    frame = entry.tb_frame
    if frame.f_code.co_filename in where.cell_names:
        return False
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INTERNAL
