"""README can be typed: its cells run one after another in IPython, its Python runs as a script."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

RUN_CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in sys.stdin.read().split("\\0"):
    shell.run_cell(cell, store_history=True).raise_error()
"""


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, of none for an empty name."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def python(code: str, text: str, folder: Path) -> str:
    """The output of a new interpreter."""
    env = {"IPYTHONDIR": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_contributing_lists_todays_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert importlib.import_module("file_index").indexed(text) == text, "run: python docs/file_index.py"


def test_the_cells_run(tmp_path: Path) -> None:
    cells = [block for block in blocks("") if block.startswith("%")]
    assert len(cells) >= 4
    shown = python(RUN_CELLS, "\0".join(cells), tmp_path)
    assert "square_error_cost" in shown or "elementwise_sub" in shown  # %fluid show lists the operators


def test_the_script_runs(tmp_path: Path) -> None:
    (script,) = [block for block in blocks("python") if "Executor" in block]
    assert re.match(r"^[\d.]+$|^\[[\d.]+\]$", python(script, "", tmp_path).strip())


def test_both_languages_show_the_same_code_and_figures() -> None:
    chinese = (ROOT / "README.zh.md").read_text()
    assert re.findall(r"^```.*?^```$", README, re.M | re.S) == re.findall(r"^```.*?^```$", chinese, re.M | re.S)
    for row in re.findall(r"^\| .*, (?:µs|ms|MB|s) \| (.*)$", README, re.M):
        assert row in chinese


def test_links_lead_to_files() -> None:
    for name in ("README.md", "README.zh.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text())
        assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_every_file_that_contributing_names_exists() -> None:
    """Paths in backticks, apart from templates such as ``NAME.py``."""
    paths = re.findall(
        r"`([a-z][\w/.-]*/[\w.-]+\.(?:py|cu|txt|toml|yml|ipynb))`", (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    )
    roots = (
        ROOT,
        ROOT / "kernels" / "fluidnb_kernels",
        ROOT / "fluidnb",
        ROOT / "fluidnb" / "runtime",
        ROOT / "magics" / "fluidnb_magics",
    )
    missing = [p for p in paths if not re.search(r"[A-Z]{3}", p) and not any((root / p).exists() for root in roots)]
    assert len(paths) > 50 and missing == []
