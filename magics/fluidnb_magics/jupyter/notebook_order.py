"""The order of the notebook's cells: as the front end reports it, else as the notebook's file has it."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class NotebookOrder:
    """The cells of the notebook in their order.

    A file is older than what the user sees; so it counts only while it has the cell that runs. A cell that was never
    seen in the notebook may belong to another one that shares the kernel: it is not taken for deleted.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._live: list[str] | None = None
        self._file: tuple[Path, int, int] | None = None
        self._saved: list[str] = []
        self._seen: set[str] = set()
        self.positions: dict[str, int] = {}  # id -> position; empty while unknown

    def report(self, ids: Iterable[str]) -> None:
        """Set the order that the front end reports."""
        self._live = list(ids)

    @property
    def reported(self) -> bool:
        """Whether the front end reports the order; until its script has loaded, the notebook's file counts."""
        return self._live is not None

    @property
    def path(self) -> str:
        """The notebook's file as the server that started the kernel named it; empty where no server did."""
        name = os.environ.get("JPY_SESSION_NAME") if getattr(self._shell, "kernel", None) is not None else None
        return name if name and name.endswith(".ipynb") else ""

    def update(self, cell_id: str | None) -> set[str]:
        """Read the order again before a cell runs, and return the ids of removed cells."""
        ids = self._live
        if ids is None or cell_id not in ids:
            ids = self._read()
        if cell_id is None or cell_id not in ids:
            return set()
        self.positions = {each: position for position, each in enumerate(ids)}
        gone = self._seen - self.positions.keys()
        self._seen = set(self.positions)
        return gone

    def is_deleted(self, cell_id: str | None) -> bool:
        """Whether a cell is part of the program, but not of the notebook."""
        return bool(self.positions) and cell_id is not None and cell_id not in self.positions

    def _read(self) -> list[str]:
        """The ids in the notebook's file; it is read again only when it has changed."""
        path = Path(self.path)
        if not self.path:
            return []
        try:
            stat = path.stat()
            state = path, stat.st_mtime_ns, stat.st_size
            if state != self._file:
                cells = json.loads(path.read_text("utf-8"))["cells"]
                self._saved = [str(cell["id"]) for cell in cells if cell.get("id")]
                self._file = state
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []
        return self._saved
