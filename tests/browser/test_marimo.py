"""marimo: cells in plain Python, widgets that answer, and a program that reactive reruns keep whole."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab import answers, end, free_port
from tests.tools.kernel import ROOT, python_of

pytestmark = [pytest.mark.browser, pytest.mark.full]  # make test-full sets the environment up

CELLS = [
    "import numpy as np\nimport fluidnb as fluid\nfrom fluidnb import layers, ui",
    "size = 3",
    "@ui.cell\ndef net():\n    x = layers.data('x', shape=[4])\n    h = layers.fc(x, size, act='relu')\n"
    "    return locals()\nnet",
    "@ui.cell\ndef train():\n    loss = layers.mean(net.h)\n    fluid.optimizer.SGD(0.1).minimize(loss)\n"
    "    return locals()\ntrain",
    "train\nexplorer = ui.explorer()\nexplorer",
    "session = fluid.debug(feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[train.loss])\n"
    "panel = ui.panel(session)\npanel",
    "train\nprint([op.type for op in fluid.default_main_program().global_block().ops], len(list(net)))",
]
_CONFIG = "[tool.marimo.runtime]\nauto_instantiate = true\n[tool.marimo.display]\ntheme = 'system'\n"
OPS = "['mul', 'elementwise_add', 'relu', 'mean', 'fill_constant', 'mean_grad', 'relu_grad', " \
      "'elementwise_add_grad', 'mul_grad', 'sgd', 'sgd'] 2"  # fmt: skip


def notebook_text(cells: list[str]) -> str:
    """A notebook file of marimo."""
    bodies = ("\n".join(f"    {line}" for line in cell.splitlines()) for cell in cells)
    parts = [f"@app.cell\ndef _():\n{body}\n    return\n" for body in bodies]
    return "import marimo\n\napp = marimo.App(width='full')\n\n\n" + "\n\n".join(parts)


@contextmanager
def marimo(folder: Path, cells: list[str]) -> Iterator[str]:
    """The address of marimo's editor with a notebook."""
    python, port, file = python_of("marimo"), free_port(), folder / "built.py"
    file.write_text(notebook_text(cells))
    (folder / "pyproject.toml").write_text(_CONFIG)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "kernels"), str(ROOT / "magics")])
    command = [
        str(python), "-m", "marimo", "edit", str(file), "--headless", "--no-token", f"--port={port}",
        "--host=127.0.0.1", "--skip-update-check",
    ]  # fmt: skip
    env = {**os.environ, "HOME": str(folder), "PYTHONPATH": paths}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            if not answers(f"http://127.0.0.1:{port}/health", server):
                raise RuntimeError((folder / "log").read_text()[-3000:])
            yield f"http://127.0.0.1:{port}/"
        finally:
            end(server)


@pytest.fixture
def page(tmp_path: Path, browser: Any) -> Iterator[Any]:
    """The notebook in marimo's editor."""
    with marimo(tmp_path, CELLS) as url:
        opened = browser.new_context(viewport={"width": 1300, "height": 2400}).new_page()
        opened.set_default_timeout(60_000)
        opened.goto(url)
        yield opened
        opened.context.close()


def test_widgets_answer_and_a_rerun_heals_the_program(page: Any, shots: Path) -> None:
    page.locator(".fw-explorer").get_by_text("sgd").first.wait_for()
    page.locator(".fw-panel .fp-step.fp-move").click()
    page.locator(".fw-panel .fp-count", has_text="step 1").wait_for()
    page.get_by_text(OPS).wait_for()
    editor = page.locator(".cm-content", has_text="size = 3").first
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("size = 5")
    page.keyboard.press("Control+Enter")
    page.locator(".fw-explorer").get_by_text("float32[4, 5]").first.wait_for()
    page.locator(".fw-panel .fp-count", has_text="step 0").wait_for()
    page.get_by_text(OPS).wait_for()
    assert not page.get_by_text("stale").count()
    page.screenshot(path=shots / "marimo.png")
