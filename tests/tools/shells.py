"""`bare_shell`: an IPython shell inside the test's own process."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@pytest.fixture
def bare_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A new shell, writing nothing outside a temporary folder."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from fluidnb_magics import extension

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.delattr(builtins, "_", raising=False)  # where doctests leave it, a shell does not touch its own
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    shell.user_ns["__name__"] = "__main__"
    yield shell
    extension.unload(shell)
    InteractiveShell.clear_instance()
