"""Notebook 7, in a separate environment: static renderings, and widgets that answer, as in JupyterLab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab import Notebook
from tests.browser.notebook_server import notebook_server
from tests.browser.panel import PanelPage

pytestmark = [pytest.mark.browser, pytest.mark.full]  # make test-full sets the environment up

CELLS = [
    "%load_ext fluidnb\nimport numpy as np",
    "%%fluid net\nx = layers.data('x', shape=[4])\nh = layers.fc(x, size=3)\nloss = layers.mean(h)",
    "%fluid show",
    "%fluid explore",
    "X = np.random.RandomState(0).rand(16, 4).astype('float32')\n%fluid debug --feed x=X --panel",
]


@pytest.fixture
def notebook7(tmp_path: Path, browser: Any) -> Iterator[Notebook]:
    """A notebook in Notebook 7."""
    with notebook_server("notebook", tmp_path, CELLS, "--JupyterNotebookApp.expose_app_in_browser=True") as url:
        page = browser.new_context(viewport={"width": 1200, "height": 1000}).new_page()
        page.set_default_timeout(60_000)
        opened = Notebook(page)
        page.goto(url)
        page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
            timeout=90_000,
        )
        yield opened
        page.context.close()


def test_faces_and_widgets(notebook7: Notebook, shots: Path) -> None:
    nb = notebook7
    for index in range(4):
        nb.run(index)
    assert "mul" in nb.text(2)
    assert "<pre" in str(nb.outputs(2)[0]["data"]["text/html"]) or "<svg" in str(nb.outputs(2)[0]["data"]["text/html"])
    widget = nb.cell(3).locator(".fw-explorer")
    widget.wait_for()
    widget.get_by_text("mean").first.wait_for()
    nb.page.screenshot(path=shots / "notebook7.png")
    nb.run(4)
    panel = PanelPage(nb)
    panel.lit("h = layers.fc(x, size=3)")
    panel.compares("x")
    for step in range(2, 4):
        panel.press("step")
        panel.at(step)
    panel.lit("loss = layers.mean(h)")
    # Notebook 7 itself misses the schema of a setting when it starts.
    assert not [error for error in nb.errors if "schema" not in error]


def test_the_order_of_cells(notebook7: Notebook) -> None:
    nb = notebook7
    for index in range(2):
        nb.run(index)
    nb.set(2, "%%fluid\nlast = layers.tanh(h)")
    nb.run(2)
    nb.page.evaluate(
        """async () => { const nb = window.jupyterapp.shell.currentWidget; nb.content.activeCellIndex = 1;
            await window.jupyterapp.commands.execute('notebook:insert-cell-below'); }"""
    )
    nb.set(2, "%%fluid\nh = layers.relu(h)")
    nb.run(2)
    nb.set(4, "print([op.type for op in fluid.default_main_program().global_block().ops][-3:])")
    assert nb.run(4) == "['mean', 'relu', 'tanh']\n"
    assert not [error for error in nb.errors if "schema" not in error]
