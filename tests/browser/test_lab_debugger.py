"""Fluid programs in JupyterLab's own debugger panel: clicks in the gutter, steps, values, and Python beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.debugger import Debugger
from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[[list[str]], Notebook]

LOAD = "%load_ext fluidnb\nimport numpy as np"
LOOP = """%%fluid net
i = layers.zeros([1], 'int64')
n = layers.fill_constant([1], 'int64', 3)
x = layers.fill_constant([8, 8], 'float32', 1.0)
cond = layers.less_than(i, n)
loop = layers.While(cond)
with loop.block():
    layers.increment(i)
    y = layers.scale(x, scale=2.0)
    layers.assign(y, x)
    layers.less_than(i, n, cond=cond)
total = layers.reduce_sum(x)"""
RUN = "%fluid run --fetch total"


def test_gutter_step_look_edit_back_finish(notebook: Open, shots: Path) -> None:
    nb = notebook([LOAD, LOOP, RUN])
    panel = Debugger(nb)
    nb.run(0)
    nb.run(1)
    panel.switch()
    panel.click(1, 9)
    assert panel.breakpoints() == [9]
    panel.start(2)
    panel.until_lit(1, 9, "block 1, iteration 0: 1 scale")
    assert panel.stack() == ["block 1, iteration 0: 1 scale", "block 0: 4 while"]
    panel.until_row("x", "1 ± 0")

    panel.press("next")
    panel.until_lit(1, 10, "2 assign")
    panel.press("continue")
    panel.until_lit(1, 9, "iteration 1: 1 scale")
    panel.open("x", "[0]")
    assert panel.rows()["mean"] == "2"
    assert panel.rows()["shape"] == "[8, 8]"
    assert panel.rows()["[0]"].startswith("float32[8]")
    nb.page.screenshot(path=shots / "lab_debugger_tensor.png")

    assert panel.evaluate("x.sum() + 1") == "129.0"
    assert "x" in panel.evaluate("%fluid edit x = 10")
    panel.until_row("x", "10 ± 0")
    assert "has no value here" in panel.evaluate("nothing_like_that")
    panel.evaluate("%fluid back 2")  # the edit is a step of its own
    panel.until_lit(1, 8, "0 increment")
    panel.press("stepIn")
    panel.until_lit(1, 9, "iteration 1: 1 scale")
    panel.until_row("x", "2 ± 0")
    panel.evaluate("%fluid edit x = 10")
    panel.until_row("x", "10 ± 0")
    nb.use_theme(dark=True)
    nb.page.screenshot(path=shots / "lab_debugger_dark.png")

    panel.click(1, 9)
    assert panel.breakpoints() == []
    panel.press("stepOut")
    panel.until_lit(1, 12, "block 0: 5 reduce_sum")
    panel.press("continue")
    panel.until_dark()
    panel.until_shown(2, "[2560]")
    assert not nb.errors
