"""The VS Code extension under node, with a module in the place of ``vscode``."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fluidnb

EDITORS = Path(fluidnb.__file__).parent / "dap" / "editors"


def ask(*questions: dict[str, Any], folder: Path = EDITORS / "vscode") -> list[Any]:
    """The answers of the extension in a folder.

    Args:
        questions: ``describe`` or ``resolve`` -> a configuration; ``file`` and ``language`` of the active editor.
        folder: where the extension is.
    """
    if shutil.which("node") is None:
        pytest.skip("node is not installed; on Debian: apt-get install nodejs npm")
    main = folder / json.loads((folder / "package.json").read_text("utf-8"))["main"]
    command = ["node", str(Path(__file__).with_name("stub_vscode.js")), str(main), json.dumps(questions)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers
