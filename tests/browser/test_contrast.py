"""The texts of all widgets and pictures have a contrast of 4.5 (WCAG AA) and 11 pixels, in JupyterLab's two themes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser import views
from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_texts_can_be_read(notebook: Callable[[list[str]], Notebook], shots: Path) -> None:
    nb = views.open_all(notebook)
    counts = dict.fromkeys(views.VIEWS, 0)
    wrong = []
    for dark in (False, True):
        nb.use_theme(dark)
        views.show_all(nb, 1230)
        canvases = nb.page.evaluate("() => canvasTexts()")
        assert len(canvases) > 20
        found = {name: views.outputs(nb, name).evaluate(views.TEXTS) for name in views.VIEWS}
        for name, texts in {**found, "canvas": canvases}.items():
            counts[name] = len(texts)
            for text in texts:
                is_sign = not any(c.isalnum() for c in text["text"].partition(": ")[2])  # as a picture: 3 is enough
                if text["ratio"] < (3 if is_sign else 4.5) or text["size"] < 10.99:
                    wrong.append((name, dark, text))
    assert not wrong
    assert min(counts[name] for name in views.VIEWS if name != "diff") > 10, counts
    assert not nb.errors
