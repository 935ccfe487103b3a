"""Pyodide under Node: its real limits are those of `browser`, and every module of the package imports there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import google.protobuf
import pytest

from tests.limits import browser

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pyodide() -> dict[str, Any]:
    """The facts that `in_pyodide.py` prints."""
    node, packages = shutil.which("node"), Path(os.environ.get("FLUIDNB_VENVS", ".venvs")) / "node"
    if node is None or not (packages / "node_modules" / "pyodide").is_dir():
        pytest.skip("no Pyodide: `make node` installs it, where node and npm are")
    folders = (
        ROOT / "fluidnb", ROOT / "kernels/fluidnb_kernels", Path(__file__).parent,
        Path(google.protobuf.__file__).parents[1],
    )  # fmt: skip
    here = Path(__file__)
    done = subprocess.run(
        [node, here.with_name("pyodide.mjs"), packages.resolve(), here.with_name("in_pyodide.py"), *folders],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def test_the_limits_of_the_stub_are_real(pyodide: dict[str, Any]) -> None:
    assert pyodide["thread"] == browser.NO_THREAD
    assert not pyodide["modules"] and not pyodide["names"], "the stub takes away what Pyodide has"


def test_every_module_imports(pyodide: dict[str, Any]) -> None:
    failed = {name: why for name, why in pyodide["imported"].items() if why}
    assert not failed and len(pyodide["imported"]) > 550


def test_requests_of_a_session_are_done_inline(pyodide: dict[str, Any]) -> None:
    assert pyodide["worked"] == [1, 2]
