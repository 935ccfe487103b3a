"""What the front end says about the cell that runs, and about cells that it deleted."""

from __future__ import annotations

from typing import Any


class FrontEnd:
    """Listens to the shell's events; nothing of the shell is changed.

    Args:
        shell: the IPython shell.

    Attributes:
        cell_id: id of the cell that runs, or None when the front end sends none (terminal, nbclient).
        raw: the whole text of that cell.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.cell_id: str | None = None
        self.raw = ""
        self._numbered = False

    def before_cell(self, info: Any) -> None:
        """The shell's ``pre_run_cell`` event.

        Args:
            info: the shell's ExecutionInfo.
        """
        self.raw = info.raw_cell or ""
        self.cell_id = getattr(info, "cell_id", None)
        self._numbered = bool(info.store_history)

    @property
    def number(self) -> int:
        """The number of the cell that runs, as its prompt shows it."""
        # `execution_count` is that number or the next one, depending on IPython's version; the history is not.
        return len(self._shell.history_manager.input_hist_parsed) - 1 if self._numbered else self._shell.execution_count

    def deleted(self) -> list[str]:
        """The cells that JupyterLab deleted since the last execution, by id."""
        kernel = getattr(self._shell, "kernel", None)
        if kernel is None:
            return []
        parent = kernel.get_parent() or {}
        return list(parent.get("metadata", {}).get("deletedCells") or ())

    def skipped(self, source: str) -> int:
        """The number of lines above a cell's source in the editor.

        Args:
            source: the text below the ``%%fluid`` line.

        Returns:
            The number of lines; 1, for the ``%%fluid`` line, when the source is not part of the cell that runs.
        """
        at = self.raw.find(source) if source else -1
        return self.raw[:at].count("\n") if at > 0 else 1

    @property
    def has_terminal(self) -> bool:
        """Whether the shell is a terminal, which shows colours but no HTML."""
        return getattr(self._shell, "kernel", None) is None
