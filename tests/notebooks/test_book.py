"""The chapters of the Book run from top to bottom, and beat their baselines by margins that are held here.

What a chapter keeps to, `notebooks/book/NN_name.ipynb`:

- Its first code cell loads the extension and reads the one switch, in plain sight. Where `short` holds, the chapter
  trains less or smaller nets, of the same kinds and on the same split, and is done in a few seconds; the full form
  takes less than three minutes on one core::

      %load_ext fluidnb
      import os
      short = "FLUIDNB_SHORT" in os.environ  # the tests look in quickly; you see the whole
      %fluid seed 1

- Its last code cell sets `result` and shows it (its last line is `result`): names, and plain Python numbers that were
  measured on data that training has not seen::

      result = {
          "measure": "mean squared error",
          "better": "lower",  # or "higher"
          "baseline": {"mean": 5900.4},  # one or more, by name
          "ours": {"line": 3000.2},  # one or more, by name
      }
      result

- `MARGINS` below has a row for it: by how much each of "ours" beats the best baseline, at least, in the units of the
  measure: (short form, full form). Choose them such that other seeds hold them too.
- It is stored as a full run left it, with outputs, in less than 500 kB, and without paths of a machine. In the root of
  the checkout, without FLUIDNB_SHORT::

      jupyter nbconvert --execute --inplace --ExecutePreprocessor.record_timing=False notebooks/book/NN_name.ipynb

- It reads no network, and writes only into a `tempfile.TemporaryDirectory`. A warning is an error.

`pytest tests/notebooks/test_book.py -k 01_fit` runs the short form, with `--full` the full one.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

BOOK = Path(__file__).parents[2] / "notebooks" / "book"
CHAPTERS = {path.stem: path for path in sorted(BOOK.glob("*.ipynb"))}

#: chapter -> one of "ours" -> by how much it beats the best baseline (short form, full form).
MARGINS: dict[str, dict[str, tuple[float, float]]] = {
    "01_fit_a_line": {"line": (2000, 2300)},
    "02_recognize_digits": {"softmax regression": (0.55, 0.84), "perceptron": (0.83, 0.88), "LeNet": (0.85, 0.90)},
    "03_image_classification": {"VGG": (0.10, 0.14), "ResNet": (0.10, 0.14)},
    "04_word2vec": {"bigram counts": (8, 50), "network": (10, 70)},
    "05_recommender_system": {"rated films": (2.2, 2.7), "new films": (1.9, 2.3)},
    "06_understand_sentiment": {"windows": (0.15, 0.24), "memory": (0.18, 0.28), "layers": (0.18, 0.26)},
    "07_label_semantic_roles": {"LSTM and CRF": (0.08, 0.20)},
    "08_machine_translation": {"attention and beam search": (0.40, 0.95)},
}


@pytest.fixture(params=CHAPTERS)
def chapter(request: pytest.FixtureRequest) -> str:
    """Each chapter's name."""
    name: str = request.param
    return name


def code_cells(name: str) -> list[Any]:
    """The code cells of a chapter, as stored."""
    return [cell for cell in nbformat.read(CHAPTERS[name], as_version=4).cells if cell.cell_type == "code"]


def margins(result: dict[str, Any]) -> dict[str, float]:
    """By how much each of ours is better than the best baseline."""
    assert list(result) == ["measure", "better", "baseline", "ours"]
    sign, best = {"lower": (-1, min), "higher": (1, max)}[result["better"]]
    return {name: sign * (value - best(result["baseline"].values())) for name, value in result["ours"].items()}


def hold(name: str, result: dict[str, Any], full: bool) -> None:
    """Fail unless a result has the margins of its chapter's row."""
    wanted = {ours: row[full] for ours, row in MARGINS[name].items()}
    got = margins(result)
    assert got.keys() == wanted.keys()
    assert {ours: margin for ours, margin in got.items() if not margin >= wanted[ours]} == {}, result


@pytest.mark.timeout(600)
def test_it_runs_and_beats_its_baseline(
    chapter: str,
    bare_shell: InteractiveShell,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full: bool = request.config.getoption("--full")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLUIDNB_SHORT", raising=False)
    if not full:
        monkeypatch.setenv("FLUIDNB_SHORT", "1")
    for cell in code_cells(chapter):
        ran = bare_shell.run_cell(cell.source, store_history=True)
        assert ran.success, cell.source
    assert bare_shell.user_ns["short"] is not full
    result = bare_shell.user_ns["result"]
    assert json.loads(json.dumps(result)) == result
    hold(chapter, result, full)


def test_it_is_stored_as_a_full_run_left_it(chapter: str) -> None:
    cells = code_cells(chapter)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert 'short = "FLUIDNB_SHORT" in os.environ' in cells[0].source
    (shown,) = cells[-1].outputs
    hold(chapter, ast.literal_eval(shown.data["text/plain"]), full=True)


def test_it_tells_nothing_of_a_machine_and_is_small(chapter: str) -> None:
    text = CHAPTERS[chapter].read_text()
    assert not re.findall(r"/(?:home|root|tmp|usr|work|Users)/[\w./-]*", text)
    assert not re.findall(r'"(?:iopub|shell)[.\w]*": "\d{4}-\d\d-\d\d[^"]*"', text)  # when a cell ran
    assert len(text.encode()) < 500_000


def test_every_chapter_has_a_row_and_every_row_a_chapter() -> None:
    assert sorted(MARGINS) == sorted(CHAPTERS)


def test_a_margin_is_measured_from_the_best_baseline_and_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    result = {"measure": "error", "better": "lower", "baseline": {"a": 3.0, "b": 2.0}, "ours": {"net": 0.5}}
    assert margins(result) == {"net": 1.5}
    assert margins({**result, "better": "higher"}) == {"net": -2.5}
    monkeypatch.setitem(MARGINS, "x", {"net": (1.0, 2.0)})
    hold("x", result, full=False)
    for wrong in (result, {**result, "ours": {"net": float("nan")}}, {**result, "ours": {}}):
        with pytest.raises(AssertionError):
            hold("x", wrong, full=True)
