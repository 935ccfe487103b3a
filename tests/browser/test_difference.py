"""Two runs compared in JupyterLab: a click on an operator of either graph shows both values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MODELS = """%load_ext fluidnb
import numpy as np, fluidnb as fluid
from fluidnb import layers
for folder, slope in (("good", 0.1), ("bad", 0.3)):
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        y = layers.softmax(layers.leaky_relu(layers.scale(layers.data("x", [4]), 2.0), alpha=slope))
        exe = fluid.Executor(fluid.CPUPlace())
        fluid.io.save_inference_model(folder, ["x"], [y], exe)
values = np.linspace(-1, 1, 8).reshape(2, 4).astype("float32")"""


def test_a_click_shows_both_values(notebook: Callable[[list[str]], Notebook], shots: Path) -> None:
    nb = notebook([MODELS, "%fluid diff good bad --values --feed x=values"])
    nb.run(0)
    nb.run(1)
    widget = nb.page.locator(".fw-difference")
    values = widget.locator(".values")
    values.locator(".title", has_text="(leaky_relu) in block 0: differs").wait_for()
    assert widget.locator(".graph svg").count() == 2 and widget.locator(".fluidnb-op.chosen").count() == 2
    widget.locator(".graph").nth(1).locator(".fluidnb-op", has_text="= scale(").click()
    values.locator(".title", has_text="(scale) in block 0: same").wait_for()
    assert "first" in values.text_content() and "second" in values.text_content()
    assert "equal" in values.text_content()
    last = widget.locator(".graph").nth(0).locator(".fluidnb-op", has_text="= softmax(")
    last.focus()
    nb.page.keyboard.press("Enter")
    values.locator(".title", has_text="(softmax) in block 0: differs").wait_for()
    for dark in (False, True):
        nb.use_theme(dark)
        widget.screenshot(path=shots / f"difference_{'dark' if dark else 'light'}.png")
    nb.use_theme(False)
    assert not nb.errors
