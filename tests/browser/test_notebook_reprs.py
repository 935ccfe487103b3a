"""Objects show themselves in JupyterLab after `import fluidnb` alone, readable in its two themes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser import views
from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SETUP = """import numpy as np
import fluidnb as fluid
from fluidnb.passes.diff import diff
x, y = fluid.layers.data("x", [13]), fluid.layers.data("变量", [1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
adam = fluid.optimizer.Adam(fluid.layers.exponential_decay(0.01, 100, 0.9))
minimized = adam.minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feed = {"x": np.ones((4, 13), "float32"), "变量": np.ones((4, 1), "float32")}
tensor = exe.run(feed=feed, fetch_list=[loss.block.vars["fc_0.w_0"]], return_numpy=False)[0]
accuracy = fluid.metrics.Accuracy()
accuracy.update(0.5, 4)
program = fluid.default_main_program()"""
#: What a cell displays.
SHOWN = [
    "program", "program.global_block().ops[0]", "loss", "fluid.global_scope()", "tensor", "exe", "adam", "minimized",
    "fluid.CPUPlace()", "fluid.CUDAPlace(0)", "accuracy", "program.cost()", "diff(fluid.Program(), program)",
]  # fmt: skip


def test_import_alone_shows_everything(notebook: Callable[[list[str]], Notebook], shots: Path) -> None:
    nb = notebook([SETUP, f"display({', '.join(SHOWN)})"])
    nb.page.evaluate(views.RECORD)
    assert "Error" not in nb.run(0) + nb.run(1)
    kinds = [sorted(output["data"]) for output in nb.outputs(1)]
    assert kinds == [["text/html", "text/plain"]] * len(SHOWN)
    wrong = []
    for dark in (False, True):
        nb.use_theme(dark)
        views.show_all(nb, 1230)
        texts = nb.cell(1).locator(".jp-Cell-outputWrapper").evaluate(views.TEXTS)
        assert len(texts) > 100
        wrong += [(dark, text) for text in texts if text["ratio"] < 4.5 or text["size"] < 10.99]
        nb.cell(1).screenshot(path=shots / f"reprs_{'dark' if dark else 'light'}.png")
    assert not wrong
    assert not nb.errors
