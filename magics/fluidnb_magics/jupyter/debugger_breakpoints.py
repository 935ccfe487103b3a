"""What was clicked in the gutters of JupyterLab's cells, for Python and for programs alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fluidnb import where
from fluidnb.dap.sources import Sources
from fluidnb.program import Program
from fluidnb_magics.jupyter.debugger_sources import CellSources
from fluidnb_magics.jupyter.kernel_private import Message

#: ``ask(command, **arguments)`` of an adapter.
Ask = Callable[..., Message]


class Clicks:
    """Breakpoints by file, as the panel requested them.

    In a ``%%fluid`` cell a click above an operator means the operator, and Python does not stop there while it builds;
    elsewhere it means Python, unless the very line made an operator.

    Args:
        points: file -> ``SourceBreakpoint`` rows of the protocol.

    Example:
        >>> clicks = Clicks({"train.py": [{"line": 3}]})
        >>> clicks.stop(fluid.default_main_program()), clicks.shown("train.py")
        (False, [3])
    """

    def __init__(self, points: dict[str, list[Message]]) -> None:
        self._points = points
        self._shown: dict[str, list[int]] = {}

    def set(self, path: str, points: list[Message]) -> None:
        """Replace those of a file.

        Args:
            path: the file.
            points: ``SourceBreakpoint`` rows.
        """
        self._points[path] = points
        self._shown.pop(path, None)

    def place(self, path: str, sources: Sources, ask: Ask) -> dict[int, Message]:
        """Set those of a file in a session.

        Args:
            path: the file.
            sources: where the session's operators are shown.
            ask: asks the session's adapter.

        Returns:
            The lines that were clicked -> a ``Breakpoint`` of the protocol, where the program can stop.
        """
        points = self._points[path]
        if not is_fluid(path):
            points = [p for p in points if sources.ops_at(path, p["line"])]
        answer = ask("setBreakpoints", source={"path": path}, breakpoints=points)
        rows = zip(points, answer["body"]["breakpoints"], strict=True) if answer["success"] else ()
        return {p["line"]: row for p, row in rows if row["verified"]}

    def merge(self, path: str, python: list[Message], ours: dict[int, Message]) -> list[Message]:
        """The response about the breakpoints of a file: verified where either debugger can stop.

        Args:
            path: the file.
            python: what debugpy made of them.
            ours: what `place` gave.

        Returns:
            ``Breakpoint`` rows in the order of the clicks.
        """
        points = self._points[path]
        python = python or [{"verified": False} for _ in points]
        merged = [ours.get(p["line"]) or row for p, row in zip(points, python, strict=False)]
        self._shown[path] = [int(row.get("line") or p["line"]) for row, p in zip(merged, points, strict=False)]
        return merged

    def shown(self, path: str) -> list[int]:
        """The lines at which the panel shows those of a file.

        Args:
            path: the file.
        """
        return self._shown.get(path) or [p["line"] for p in self._points.get(path, ())]

    def stop(self, program: Program) -> bool:
        """Whether any of them stops in a program.

        Args:
            program: the program.
        """
        sources = CellSources(lambda: program)
        return any(self._stop_at(sources, path, points) for path, points in self._points.items())

    @staticmethod
    def _stop_at(sources: Sources, path: str, points: Iterable[Message]) -> bool:
        if is_fluid(path):
            last = max(sources.lines(path), default=0)
            return any(p["line"] <= last for p in points)
        return any(sources.ops_at(path, p["line"]) for p in points)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._points))


def is_fluid(path: str) -> bool:
    """Whether a file is a ``%%fluid`` cell, in which clicks mean operators and not Python.

    Args:
        path: the file; the kernel has written the text of a cell to it, which may not have run yet.

    Example:
        >>> is_fluid("train.py")
        False
    """
    if path in where.cell_names:
        return True
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().startswith("%%fluid")
    except (OSError, UnicodeError):
        return False
