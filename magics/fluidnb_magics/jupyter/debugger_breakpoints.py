"""The sources of operators in JupyterLab's debugger, and the breakpoints that are clicked in the gutters of cells."""

import linecache
from collections.abc import Callable, Iterator

from fluidnb.dap import ScriptSources
from fluidnb.dap.sources import LISTING, LISTING_REFERENCE, Source, Sources
from fluidnb.debug.snapshot import OpLocation
from fluidnb.errors import NotFound
from fluidnb.program import Program
from fluidnb.utils.source_location import cell_names
from fluidnb_magics.jupyter.kernel_private import Message

#: ``request(command, **arguments)`` of an adapter.
Request = Callable[..., Message]


class CellSources(ScriptSources):
    """Shows operators at their line in a cell (by the file name of its code) or a file; others in a listing."""

    def locate(self, op: OpLocation) -> tuple[Source, int]:
        if op.line and (op.file in cell_names or op.file in linecache.cache):
            return {"name": cell_names.get(op.file) or op.where.partition(",")[0], "path": op.file}, op.line
        return super().locate(op)

    def text_of(self, path: str) -> str:
        """The text of a source, by its path alone, as JupyterLab requests it."""
        if path == LISTING:
            return self.content(LISTING_REFERENCE)
        lines = linecache.getlines(path)
        if not lines:
            raise NotFound("There is no such source.", received=path)
        return "".join(lines)


class Clicks:
    """Breakpoints by file, as the panel requested them.

    In a ``%%fluid`` cell a click above an operator means the operator, and Python does not stop there while it builds;
    elsewhere it means Python, unless the very line appended an operator.
    """

    def __init__(self, points: dict[str, list[Message]]) -> None:
        self._points = points
        self._shown: dict[str, list[int]] = {}

    def set(self, path: str, points: list[Message]) -> None:
        """Replaces the breakpoints of a source file."""
        self._points[path] = points
        self._shown.pop(path, None)

    def set_in(self, path: str, sources: Sources, request: Request) -> dict[int, Message]:
        """Set those of a file in a session: line that was clicked -> a verified ``Breakpoint`` of the protocol."""
        points = self._points[path]
        if not is_fluid(path):
            points = [p for p in points if sources.ops_at(path, p["line"])]
        result = request("setBreakpoints", source={"path": path}, breakpoints=points)
        rows = zip(points, result["body"]["breakpoints"], strict=True) if result["success"] else ()
        return {p["line"]: row for p, row in rows if row["verified"]}

    def merge(self, path: str, python: list[Message], fluid: dict[int, Message]) -> list[Message]:
        """The response about the breakpoints of a file, in the order of the clicks."""
        points = self._points[path]
        python = python or [{"verified": False} for _ in points]
        merged = [fluid.get(p["line"]) or row for p, row in zip(points, python, strict=False)]
        self._shown[path] = [int(row.get("line") or p["line"]) for row, p in zip(merged, points, strict=False)]
        return merged

    def shown(self, path: str) -> list[int]:
        """The lines at which the panel shows those of a file."""
        return self._shown.get(path) or [p["line"] for p in self._points.get(path, ())]

    def stop(self, program: Program) -> bool:
        """Whether any of them stops in a program."""
        sources = CellSources(lambda: program)
        for path, points in self._points.items():
            last = max(sources.lines(path), default=0) if is_fluid(path) else 0
            if any(p["line"] <= last if is_fluid(path) else sources.ops_at(path, p["line"]) for p in points):
                return True
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._points))


def is_fluid(path: str) -> bool:
    """Whether a file is a ``%%fluid`` cell, which may not have run yet; clicks in it mean operators."""
    if path in cell_names:
        return True
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().startswith("%%fluid")
    except (OSError, UnicodeError):
        return False
