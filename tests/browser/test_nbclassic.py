"""nbclassic, the notebook before version 7: pictures fold, widgets answer, and keys stay in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.notebook_server import notebook_server

pytestmark = [pytest.mark.browser, pytest.mark.full]  # make test-full sets the environment up

CELLS = (
    "%load_ext fluidnb\nimport numpy as np",
    "%%fluid net\nx = layers.data('x', shape=[4])\nh = layers.fc(x, size=3)\nloss = layers.mean(h)",
    "%fluid show",
    "%fluid show --fold layers",
    "%fluid explore",
    "X = np.random.RandomState(0).rand(16, 4).astype('float32')\n%fluid debug --feed x=X --panel",
)
RUN = "i => Jupyter.notebook.execute_cells([i])"
RAN = "i => Jupyter.notebook.get_cell(i).input_prompt_number > 0"
#: Widgets that are created before this is registered are shown as their static rendering.
READY = """() => window.Jupyter?.notebook?.kernel?.is_connected()
    && Jupyter.notebook.kernel.comm_manager?.targets["jupyter.widget"]"""


@pytest.fixture
def page(tmp_path: Path, browser: Any) -> Iterator[Any]:
    """The notebook, whose cells have run."""
    with notebook_server("nbclassic", tmp_path, CELLS) as url:
        opened = browser.new_context(viewport={"width": 1250, "height": 1000}).new_page()
        opened.set_default_timeout(60_000)
        errors: list[str] = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.goto(url)
        opened.wait_for_function(READY)
        for index in range(len(CELLS)):
            opened.evaluate(RUN, index)
            opened.wait_for_function(RAN, arg=index)
        yield opened
        opened.context.close()
        assert errors == []


def test_pictures_and_widgets(page: Any, shots: Path) -> None:
    page.locator(".cell >> nth=2").locator("svg .fluidnb-op", has_text="mean").wait_for()
    summary = page.locator(".cell >> nth=3").locator("summary")
    assert summary.evaluate("e => getComputedStyle(e).display") == "list-item"  # nbclassic would hide the marker
    summary.click()
    page.locator(".cell >> nth=3").locator("details div", has_text="elementwise_add").wait_for()
    explorer, panel = page.locator(".fw-explorer"), page.locator(".fw-panel")
    panel.locator(".fp-count", has_text="step 0").wait_for()
    explorer.locator(".fe-search").fill("mean")
    explorer.locator(".fe-count", has_text="1 found").wait_for()
    assert not any(still.is_visible() for still in page.locator("[data-fluidnb-static]").all())
    panel.focus()
    page.keyboard.press("s")
    panel.locator(".fp-count", has_text="step 1").wait_for()
    page.screenshot(path=shots / "nbclassic.png")
    for widget in (panel, explorer, panel.locator(".fp-listing"), explorer.locator(".fw-rows")):
        widget.focus()
        for key in ("d", "d", "x", "a", "b"):  # delete, cut and insert cells
            page.keyboard.press(key)
    assert page.locator(".cell").count() == len(CELLS)
