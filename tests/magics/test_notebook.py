"""The tour, executed as nbclient does: every cell runs, displays are plain text, the classifier is good."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
TOUR = ROOT / "notebooks" / "00_tour.ipynb"

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def execute(notebook: Any, home: Path) -> None:
    """Run a notebook in a kernel of its own."""
    import os

    paths = os.pathsep.join(str(ROOT / folder) for folder in ("", "kernels", "magics"))
    env = {**os.environ, "PYTHONPATH": paths, "IPYTHONDIR": str(home), "JUPYTER_RUNTIME_DIR": str(home)}
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute(env=env, cwd=str(home))


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tour after its execution in a kernel of its own."""
    notebook = nbformat.read(TOUR, as_version=4)
    execute(notebook, tmp_path_factory.mktemp("home"))
    return notebook


def texts(cell: Any) -> str:
    """All plain text that a cell shows."""
    found = [o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return "\n".join(found)


def by_source(notebook: Any, start: str) -> Any:
    """The first code cell with a piece of text in its source."""
    return next(c for c in notebook.cells if c.cell_type == "code" and start in c.source)


def test_training_and_accuracy(executed: Any) -> None:
    assert float(texts(by_source(executed, "test_accuracy, predicted"))) >= 0.95
    squared = texts(by_source(executed, "--watch squared"))
    means = re.findall(r"squared ([\d.]+)", squared)
    assert float(means[-1]) < 6000, "a line that predicts the mean has about 5,900; untrained it is above 20,000"


def test_progress_is_plain_text(executed: Any) -> None:
    for start in ("--watch loss accuracy", "fluid.progress", "--watch squared"):
        outputs = by_source(executed, start).outputs
        assert len(outputs) == 1
        assert set(outputs[0].data) == {"text/plain"}
        text = outputs[0].data["text/plain"]
        *means, last = text.splitlines()
        assert all(re.match(r"pass \d+  \w+ [\d.e+]+ .*in [\d.]+ s$", line) for line in means) and len(means) <= 20
        assert re.search(r"(\d+)/\1 ", last), text


def test_run_again_builds_later_cells_again(executed: Any) -> None:
    again = [
        c for c in executed.cells if c.cell_type == "code" and "size=64, act='relu')\ndigit = layers.fc" in c.source
    ]
    assert "built again: goal" in texts(again[0])
    assert "will be initialized on the next run: hidden.w_0" in texts(again[0])
    assert texts(by_source(executed, "len(fluid.default_main_program()")) == "23"


def test_pictures_have_both_faces(executed: Any) -> None:
    shown = by_source(executed, "%fluid show").outputs[0].data
    assert "<svg" in shown["text/html"]
    assert "forward" in shown["text/plain"]
    assert "\x1b" not in json.dumps(shown)


def test_the_mistake_is_readable(executed: Any) -> None:
    error = by_source(executed, "elementwise_add(hidden, label)").outputs[0]
    text = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback))
    assert "digit = layers.elementwise_add(hidden, label)" in text
    assert "fluidnb/" not in text
    assert len(text.splitlines()) < 15


def test_the_tour_is_stored_with_its_pictures() -> None:
    stored = nbformat.read(TOUR, as_version=4)
    code = [c for c in stored.cells if c.cell_type == "code"]
    assert [c.execution_count for c in code] == list(range(1, len(code) + 1))
    for start in ("%fluid show", "%fluid runs", "%%fluid regression", "%%fluid count"):
        pictures = [o.data["text/html"] for o in by_source(stored, start).outputs if "<svg" in str(o.get("data"))]
        assert pictures, start
    assert "loss" in texts(by_source(stored, "--watch loss accuracy"))
    assert float(texts(by_source(stored, "test_accuracy, predicted"))) >= 0.95


def test_a_block_over_several_cells(tmp_path: Path) -> None:
    sources = (
        "%load_ext fluidnb",
        "%%fluid data\ni, n = layers.zeros([1], 'int64'), layers.fill_constant([1], 'int64', 3)\n"
        "more = layers.less_than(i, n)\nturns = layers.While(more)",
        "%fluid block open turns",
        "%%fluid add --in turns\nprint('one')\nlayers.increment(i, 1)\ndisplay('first')",
        "%%fluid test --in turns\nprint('two')\nlayers.less_than(i, n, cond=more)\n'last'",
        "%fluid block close turns",
        "%fluid block",
        "%fluid run --fetch i",
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    execute(notebook, tmp_path)
    shown = [texts(cell) for cell in notebook.cells]
    assert shown[3].splitlines()[0] == "one"
    assert "'first'" in shown[3]
    assert shown[4].splitlines()[0] == "two"
    assert "'last'" in shown[4]
    assert "first" not in shown[4]
    assert "turns  1 op, closed" in shown[5]
    assert "<pre" in notebook.cells[6].outputs[0].data["text/html"]
    assert "└─ block 1  in block 0        while  turns  from cells add, test" in shown[6]
    assert "[3]" in shown[7]
