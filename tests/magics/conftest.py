"""A real IPython shell with the extension loaded, and what it shows."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import fluidnb as fluid
from fluidnb_magics import extension
from fluidnb_magics.session.workbench import Workbench


class Session:
    """A shell that a test types into.

    Args:
        shell: the shell.
        capsys: what it writes.

    Attributes:
        shell: the shell.
    """

    def __init__(self, shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
        self.shell = shell
        self._capsys = capsys

    @property
    def names(self) -> dict[str, Any]:
        """The user's names."""
        return self.shell.user_ns

    @property
    def bench(self) -> Workbench:
        """The session behind the magics."""
        return extension.load(self.shell).bench

    def run(self, cell: str, cell_id: str | None = None) -> str:
        """Run a cell that must not fail.

        Args:
            cell: its text.
            cell_id: the id that a front end would send.

        Returns:
            What it showed.
        """
        self._capsys.readouterr()
        result = self.shell.run_cell(cell, store_history=True, cell_id=cell_id)
        shown = self._capsys.readouterr().out
        assert result.success, shown
        return shown

    def fail(self, cell: str, cell_id: str | None = None) -> tuple[BaseException, str]:
        """Run a cell that must fail.

        Args:
            cell: its text.
            cell_id: the id that a front end would send.

        Returns:
            The error, and what was shown.
        """
        self._capsys.readouterr()
        result = self.shell.run_cell(cell, store_history=True, cell_id=cell_id)
        error = result.error_in_exec or result.error_before_exec
        assert error is not None, "the cell did not fail"
        return error, self._capsys.readouterr().out

    @staticmethod
    def ops() -> list[str]:
        """The types of the operators of the default program, block by block."""
        return [op.optype for block in fluid.default_main_program().desc.blocks for op in block.ops]

    @staticmethod
    def state() -> tuple[bytes, bytes]:
        """The bytes of the default programs."""
        main, startup = fluid.default_main_program(), fluid.default_startup_program()
        return main.desc.serialize_to_string(), startup.desc.serialize_to_string()


@pytest.fixture
def session(bare_shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> Session:
    """A shell with the extension loaded."""
    started = Session(bare_shell, capsys)
    started.run("%load_ext fluidnb\nimport numpy as np")
    return started
