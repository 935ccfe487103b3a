"""The tour in JupyterLab: every cell runs, also where the front end sends cell ids; a second time too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from tests.browser.lab import ROOT, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOUR = ROOT / "notebooks" / "00_tour.ipynb"


def test_tour(notebook: Callable[[Path], Notebook], shots: Path) -> None:
    cells = nbformat.read(TOUR, as_version=4).cells
    code = [i for i, c in enumerate(cells) if c.cell_type == "code"]
    nb = notebook(TOUR)
    for turn in range(2):
        for i in code:
            nb.run(i)
            wrong = [o for o in nb.outputs(i) if o["output_type"] == "error"]
            assert bool(wrong) == ("raises-exception" in cells[i].metadata.get("tags", [])), nb.text(i)
        accuracy = next(i for i in code if "test_accuracy.item()" in cells[i].source)
        assert float(nb.text(accuracy)) >= 0.95
        trained = next(i for i in code if "--passes 12" in cells[i].source)
        assert nb.cell(trained).locator(".fluidnb svg").count() == 1, turn
    nb.use_theme(dark=False)
    nb.scroll_to(trained)
    nb.page.screenshot(path=shots / "tour.png")
    assert not nb.errors
