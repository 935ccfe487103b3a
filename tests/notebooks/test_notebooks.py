"""The tour, the debugging page and the guide run in a fresh kernel, and what is stored in them is what they give."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from fluidnb_kernels import emulator

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted([*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "notebooks" / "guide").glob("*.ipynb")])


#: Pages that run CUDA kernels on the emulator.
EMULATED = ("kernels", "16_kernel_lab", "18_devices")


def shape(nb: nbformat.NotebookNode) -> list[list[tuple[str, tuple[str, ...]]]]:
    """The outputs of each code cell without their numbers: kinds and formats."""
    return [
        [(o.output_type, tuple(sorted(o.get("data", {})))) for o in cell.outputs if o.output_type != "stream"]
        for cell in nb.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: str(p.relative_to(ROOT / "notebooks")))
@pytest.mark.filterwarnings("ignore")  # of the machinery around the kernel
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem in EMULATED and emulator.missing():
        pytest.skip(emulator.missing())
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'kernels'}:{ROOT / 'magics'}")
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.from_dict(stored)
    expected = shape(stored)
    NotebookClient(fresh, timeout=180, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert not any(expected) or shape(fresh) == expected
    assert all(cell.get("outputs", True) or cell.source for cell in stored.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: str(p.relative_to(ROOT / "notebooks")))
def test_it_is_stored_without_paths_of_a_machine(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.findall(r"/(?:home|root|tmp|usr|work|Users)/[\w./-]*", text) == []
    assert re.findall(r'"(?:iopub|shell)[.\w]*": "\d{4}-\d\d-\d\d[^"]*"', text) == []  # when a cell ran


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_guide_is_indexed_in_the_readme(name: str) -> None:
    readme = (ROOT / name).read_text("utf-8")
    assert [p.name for p in NOTEBOOKS if f"]({p.relative_to(ROOT)})" not in readme] == []
