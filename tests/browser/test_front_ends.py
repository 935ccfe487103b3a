"""Every widget in every front end that runs here, light and dark; each test leaves two pictures of all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab import Notebook
from tests.browser.notebook_server import notebook_server
from tests.browser.test_marimo import marimo
from tests.browser.test_nbclassic import RAN, READY, RUN
from tests.browser.widget_page import LIGHTNESS

pytestmark = [pytest.mark.browser, pytest.mark.full]  # make test-full sets the environments up

PROGRAM = """import numpy as np
import fluidnb as fluid
from fluidnb import layers, ui
x, y = layers.data("x", shape=[4]), layers.data("y", shape=[1])
h = layers.fc(x, size=8, act="relu")
loss = layers.mean(layers.square_error_cost(layers.fc(h, size=1), y))
made = fluid.optimizer.Adam(0.05).minimize(loss)
feed = {"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}
exe = fluid.Executor(fluid.CPUPlace())
out = exe.run(fluid.default_startup_program())
views = [ui.scope(), ui.memory(), ui.timeline()]
for _ in range(3):
    out = exe.run(feed=feed, fetch_list=[loss])"""
WIDGETS = [
    "loss\nui.explorer()", "loss\nui.builder('fc')", "loss\nui.panel(fluid.debug(feed=feed, fetch_list=[loss]))",
    "views[0]", "views[1]", "views[2]", "ui.lesson('backward')", "ui.lesson('lod')", "ui.lesson('optimizer')",
]  # fmt: skip
CELLS = [PROGRAM, *WIDGETS]
_SHAPES = "(widgets) => widgets.map(e => [e.offsetWidth, e.offsetHeight])"


def look(page: Any, name: str, shots: Path, darken: Callable[[], Any], follows: bool = True) -> int:
    """All widgets are there, in the light and in the dark; a picture of each.

    Args:
        page: of a notebook whose cells run.
        name: of the front end.
        shots: where pictures go.
        darken: switches the front end to dark.
        follows: whether widgets become dark, too.

    Returns:
        The number of widgets.
    """
    widgets = page.locator(".fluidnb-widget")
    widgets.nth(len(WIDGETS) - 1).wait_for()
    page.locator(".fw-panel .fp-count", has_text="step 0").wait_for()
    assert not page.get_by_text("undefined").count()
    for theme in ("light", "dark"):
        if theme == "dark":
            darken()
        page.wait_for_timeout(2000)
        page.screenshot(path=shots / f"{name}_{theme}.png", full_page=True)
        shapes = widgets.evaluate_all(_SHAPES)
        assert all(width > 400 and height > 60 for width, height in shapes)
        for ground, text in widgets.evaluate_all(LIGHTNESS):
            assert (ground < 0.4 and text > 0.6) if theme == "dark" and follows else (ground > 0.9 and text < 0.4)
    return widgets.count()  # type: ignore[no-any-return]


def tall(page: Any) -> Any:
    """A page that shows all of a notebook at once."""
    page.set_viewport_size({"width": 1300, "height": 6000})
    page.set_default_timeout(90_000)
    return page


def test_jupyterlab(notebook: Callable[[list[str]], Notebook], shots: Path) -> None:
    nb = notebook(CELLS)
    tall(nb.page)
    nb.use_theme(dark=False)  # JupyterLab keeps the one of the test before
    for index in range(len(CELLS)):
        nb.run(index)
    assert look(nb.page, "jupyterlab", shots, lambda: nb.use_theme(dark=True)) == len(WIDGETS)
    assert not nb.errors


def test_notebook_7(tmp_path: Path, browser: Any, shots: Path) -> None:
    with notebook_server("notebook", tmp_path, CELLS, "--JupyterNotebookApp.expose_app_in_browser=True") as url:
        nb = Notebook(tall(browser.new_context().new_page()))
        nb.page.goto(url)
        nb.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
        )
        for index in range(len(CELLS)):
            nb.run(index)
        assert look(nb.page, "notebook_7", shots, lambda: nb.use_theme(dark=True)) == len(WIDGETS)
        nb.page.context.close()


def test_nbclassic(tmp_path: Path, browser: Any, shots: Path) -> None:
    """It has no dark theme: where people darken it by their custom.css, widgets stay light, and can be read."""
    css = """:root { color-scheme: dark; } body, #site, .notebook_app, #notebook-container, div.cell, .output_area
        { background: #111 !important; color: #ddd !important; } .CodeMirror { background: #222; color: #ddd; }"""
    with notebook_server("nbclassic", tmp_path, CELLS) as url:
        page = tall(browser.new_context().new_page())
        page.goto(url)
        page.wait_for_function(READY)
        page.wait_for_timeout(3000)  # its widget manager begins anew when the kernel is ready, and drops what it shows
        for index in range(len(CELLS)):
            page.evaluate(RUN, index)
            page.wait_for_function(RAN, arg=index)
        assert look(page, "nbclassic", shots, lambda: page.add_style_tag(content=css), follows=False) == len(WIDGETS)
        markers = page.locator(".fluidnb-widget summary")
        assert markers.count() > 3
        assert set(markers.evaluate_all("(all) => all.map(e => getComputedStyle(e).display)")) == {"list-item"}
        page.context.close()


def test_marimo(tmp_path: Path, browser: Any, shots: Path) -> None:
    with marimo(tmp_path, CELLS) as url:
        page = tall(browser.new_context(color_scheme="light").new_page())
        page.goto(url)
        assert look(page, "marimo", shots, lambda: page.emulate_media(color_scheme="dark")) == len(WIDGETS)
        page.context.close()
