"""The metadata of the front end about the cell that runs, and about cells that it deleted."""

from typing import Any


class FrontEnd:
    """Observes the shell's events."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.cell_id: str | None = None  # of the cell that runs; None where the front end sends none (terminal)
        self.raw = ""
        self._numbered = False

    def before_cell(self, info: Any) -> None:
        """The shell's ``pre_run_cell`` event."""
        self.raw = info.raw_cell or ""
        self.cell_id = getattr(info, "cell_id", None)
        self._numbered = bool(info.store_history)

    @property
    def number(self) -> int:
        """The number of the cell that runs, as its prompt shows it."""
        # `execution_count` is that number or the next one, depending on IPython's version; the history is not.
        return len(self._shell.history_manager.input_hist_parsed) - 1 if self._numbered else self._shell.execution_count

    def deleted(self) -> list[str]:
        """The ids of the cells that JupyterLab deleted since the last execution."""
        kernel = getattr(self._shell, "kernel", None)
        if kernel is None:
            return []
        parent = kernel.get_parent() or {}
        return list(parent.get("metadata", {}).get("deletedCells") or ())

    def skipped(self, source: str) -> int:
        """The number of lines above a cell's source in the editor; 1 when it is not part of the cell that runs."""
        at = self.raw.find(source) if source else -1
        return self.raw[:at].count("\n") if at > 0 else 1
