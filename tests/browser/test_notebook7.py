"""Notebook 7 shows what JupyterLab shows: static faces, and widgets that answer. In an environment of its own."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.lab import Notebook, _free_port, end
from tests.browser.panel import PanelPage
from tests.tools.kernel import ROOT, python_of

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
    python, port, root = python_of("notebook"), _free_port(), tmp_path / "notebooks"
    root.mkdir()
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    written.metadata["kernelspec"] = {"name": "python3", "display_name": "python3", "language": "python"}
    nbformat.write(written, root / "seven.ipynb")
    paths = os.pathsep.join([str(ROOT), str(ROOT / "kernels"), str(ROOT / "magics")])
    homes = {name: str(tmp_path / name) for name in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    command = [
        str(python), "-m", "notebook", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=t", f"--ServerApp.root_dir={root}",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]  # fmt: skip
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, env={**os.environ, **homes, "PYTHONPATH": paths}, stdout=log, stderr=log)
        try:
            _wait(f"http://127.0.0.1:{port}/api/status?token=t", tmp_path / "log")
            page = browser.new_context(viewport={"width": 1200, "height": 1000}).new_page()
            page.set_default_timeout(60_000)
            opened = Notebook(page)
            page.goto(f"http://127.0.0.1:{port}/notebooks/seven.ipynb?token=t")
            page.wait_for_function(
                "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
                timeout=90_000,
            )
            yield opened
            page.context.close()
        finally:
            end(server)


def _wait(url: str, log: Path) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(log.read_text()[-3000:])


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
