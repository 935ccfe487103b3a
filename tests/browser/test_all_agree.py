"""One session, three faces: the panel, the magics and JupyterLab's own debugger agree at every stop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.debugger import Debugger
from tests.browser.lab import Notebook
from tests.browser.panel import PanelPage
from tests.browser.test_lab_debugger import LOAD, LOOP

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_whoever_moves_all_stand_at_the_same_place(notebook: Callable[[list[str]], Notebook]) -> None:
    words = ["debug --fetch total --panel", "where", "back 2", "edit x = 10"]
    nb = notebook([LOAD, LOOP, *(f"%fluid {word}" for word in words)])
    lab = Debugger(nb)
    nb.run(0)
    nb.run(1)
    lab.switch()
    lab.click(1, 9)
    nb.run(2)
    panel = PanelPage(nb)

    def stand(step: int, line: int, frame: str, op: str) -> None:
        lab.until_lit(1, line, frame)
        panel.at(step)
        panel.here(op)
        shown = nb.run(3)
        assert f"step {step} " in shown and f"cell net, line {line}" in shown, shown

    stand(0, 2, "block 0: 0 fill_constant", "fill_constant(dtype=int64")
    lab.press("continue")  # to the click in the gutter
    stand(6, 9, "block 1, iteration 0: 1 scale", "scale(x")
    panel.press("step")
    stand(7, 10, "block 1, iteration 0: 2 assign", "assign(y)")
    nb.run(4)
    stand(5, 8, "block 1, iteration 0: 0 increment", "increment(i)")
    lab.press("next")
    stand(6, 9, "block 1, iteration 0: 1 scale", "scale(x")
    nb.run(5)  # an edit is a step of its own
    stand(7, 9, "block 1, iteration 0: 1 scale", "scale(x")
    lab.until_row("x", "10 ± 0")
    panel.press("back")
    stand(6, 9, "block 1, iteration 0: 1 scale", "scale(x")
    lab.until_row("x", "1 ± 0")
    lab.press("continue")
    stand(11, 9, "block 1, iteration 1: 1 scale", "scale(x")
    panel.press("rcontinue")
    stand(6, 9, "block 1, iteration 0: 1 scale", "scale(x")
    lab.click(1, 9)
    panel.press("continue")
    lab.until_dark()
    panel.root.locator(".fp-state", has_text="done").wait_for()
    assert "done" in nb.run(3) and nb.errors == []
