"""A notebook with every widget and picture, and scripts that measure all its texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.browser.lab import Notebook

_SETUP = [
    "%load_ext fluidnb\nimport numpy as np\n"
    "def batches():\n    rng = np.random.RandomState(0)\n    for i in range(30):\n"
    "        X = rng.rand(16, 4).astype('float32')\n        yield [(x, x.sum(keepdims=True)) for x in X]\n"
    "X = np.random.RandomState(0).rand(16, 4).astype('float32'); Y = X.sum(1, keepdims=True)",
    "%%fluid data\nx = layers.data('x', shape=[4])\ny = layers.data('y', shape=[1])",
    "%%fluid net\nh = layers.fc(x, size=8, act='relu')\npred = layers.fc(h, size=1)",
    "%%fluid loss\nloss = layers.mean(layers.square_error_cost(pred, y))\n"
    "ops, grads = fluid.optimizer.Adam(0.05).minimize(loss)",
    "%%fluid count --program loop\ni = layers.fill_constant([1], 'int64', 0)\n"
    "n = layers.fill_constant([1], 'int64', 3)\nmore = layers.less_than(i, n)\nloop = layers.While(more)\n"
    "with loop.block():\n    i = layers.increment(i, value=1, in_place=True)\n"
    "    more = layers.less_than(i, n, cond=more)",
]
#: name of a view -> the cell that shows it.
VIEWS = {
    "show": "%fluid show",
    "curves": "%fluid train batches --passes 2 --watch loss --test batches",
    "runs": "%fluid runs",
    "graph": "%fluid graph",
    "graph_loop": "%fluid graph --program loop",
    "explore": "%fluid explore",
    "scope": "%fluid scope",
    "scope_live": "%fluid scope --live",
    "memory": "%fluid memory",
    "memory_live": "%fluid memory --live",
    "profile": "%fluid profile --feed x=X y=Y --fetch loss --steps 3",
    "timeline": "%fluid profile --live --feed x=X y=Y --fetch loss --steps 3",
    "build": "%fluid build fc",
    "cells": "%fluid cells",
    "op": "%fluid ops softmax",
    "diff": "%fluid diff",
    "teach_backward": "%fluid teach backward --step 9",
    "teach_lod": "%fluid teach lod",
    "teach_optimizer": "%fluid teach optimizer",
    "panel": "%fluid debug --feed x=X y=Y --fetch loss --panel\n%fluid break op adam\n%fluid watch h.mean()",
}
FIRST = len(_SETUP)
CELLS = [*_SETUP, *VIEWS.values()]

_SCRIPTS = (Path(__file__).parent / "views.js").read_text("utf-8")
#: A statement that keeps what is drawn on canvases, and defines what `TEXTS` uses.
RECORD, _, TEXTS = _SCRIPTS.partition("\n// All texts inside an element")
RECORD = RECORD.partition("const record = ")[2].strip().removesuffix(";")
#: A function of an element: its texts with their contrast, and their size in pixels of the screen.
TEXTS = TEXTS.partition("const texts = ")[2].strip().removesuffix(";")


def open_all(notebook: Any) -> Notebook:
    """Open a notebook with all views, and run it; the page is so tall that all of it is seen."""
    nb: Notebook = notebook(CELLS)
    nb.page.evaluate(RECORD)
    for index in range(len(CELLS)):
        nb.run(index)
    panel = nb.cell(FIRST + list(VIEWS).index("panel"))
    panel.locator(".fp-step.fp-move").click()
    panel.locator(".fp-count", has_text="step 1").wait_for()
    panel.locator(".fp-values .fp-value").first.click()
    panel.locator(".fp-opened table").first.wait_for()
    return nb


def outputs(nb: Notebook, name: str) -> Any:
    """The outputs of a view."""
    return nb.cell(FIRST + list(VIEWS).index(name)).locator(".jp-Cell-outputWrapper")


def show_all(nb: Notebook, width: int) -> None:
    """Make the page so tall that every cell is in view."""
    nb.page.set_viewport_size({"width": width, "height": 1000})
    nb.page.wait_for_timeout(800)
    high = nb.page.evaluate("() => document.querySelector('.jp-WindowedPanel-inner, .jp-Notebook').scrollHeight")
    nb.page.set_viewport_size({"width": width, "height": min(int(high) + 600, 30_000)})
    nb.page.wait_for_timeout(1500)
