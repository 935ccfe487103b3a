"""Pictures in JupyterLab: nested blocks, roles by colour, training curves; readable in light and in dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.viz import read_program, select
from fluidnb.viz.program.html import folding_html
from tests.browser.lab import Notebook
from tests.viz.programs import sequences

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = [
    "%load_ext fluidnb\nimport numpy as np\n"
    "def batches():\n    for i in range(300):\n        X = np.random.rand(16, 4).astype('float32')\n"
    "        yield [(x, x.sum(keepdims=True)) for x in X]",
    "%%fluid data\nx = layers.data('x', shape=[4])\ny = layers.data('y', shape=[1])",
    "%%fluid net\nh = layers.fc(x, size=8, act='relu')\npred = layers.fc(h, size=1)\npred",
    "%%fluid loss\nloss = layers.mean(layers.square_error_cost(pred, y))\n"
    "ops, grads = fluid.optimizer.SGD(0.05).minimize(loss)",
    "%%fluid count --program loop --show\ni = layers.fill_constant([1], 'int64', 0)\n"
    "n = layers.fill_constant([1], 'int64', 10)\nmore = layers.less_than(i, n)\nloop = layers.While(more)\n"
    "with loop.block():\n    i = layers.increment(i, value=1, in_place=True)\n"
    "    more = layers.less_than(i, n, cond=more)",
    "%fluid show",
    "%fluid train batches --passes 2 --watch loss",
    "fluid.global_scope()",
    "loss",
]


def luminance(rgb: list[float]) -> float:
    """Relative luminance as WCAG has it."""
    parts = [c / 255 for c in rgb[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: list[float], b: list[float]) -> float:
    """Contrast ratio of two colours, 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


# A mixed colour is written `color(srgb 0.94 0.57 0.58)`, any other `rgb(239, 145, 148)`.
COLOURS = """el => { const n = s => s.match(/[\\d.]+/g).map(v => Number(v) * (s.startsWith('color(') ? 255 : 1));
    let ground = document.querySelector('.jp-WindowedPanel-outer, .jp-Notebook');
    return [n(getComputedStyle(el).fill), n(getComputedStyle(ground).backgroundColor)]; }"""


def test_light_and_dark(notebook: Callable[[list[str]], Notebook], shots: Path) -> None:
    nb = notebook(CELLS)
    for i in range(len(CELLS)):
        nb.run(i)
    loop, program = nb.cell(4).locator(".fluidnb svg"), nb.cell(5).locator(".fluidnb svg")
    assert loop.locator("[id*=_block_1]").count() == 1
    assert loop.locator("[id*=_op_1_]").count() == 2
    assert program.locator("g.forward").count() == 8
    assert program.locator("g.backward").count() == 9
    assert program.locator("g.optimizer").count() == 4
    ids = nb.page.eval_on_selector_all("svg [id*=_op_]", "all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert "cell net, line 2" in program.text_content()
    assert nb.cell(6).locator(".fluidnb svg").count() == 1
    assert "600/600" in nb.text(6)
    assert "pass 2/2" in nb.text(6)
    for dark in (False, True):
        nb.use_theme(dark)
        for text in (program.locator("text").first, program.locator("g.backward tspan").nth(1)):
            colour, ground = text.evaluate(COLOURS)
            assert contrast(colour, ground) > 3, (dark, colour, ground)
        for i in (4, 5, 6, 8):
            nb.cell(i).scroll_into_view_if_needed()
            nb.page.screenshot(path=shots / f"pictures_{'dark' if dark else 'light'}_{i}.png")
    assert not nb.errors


def test_a_folding_listing_searches_without_a_kernel(browser: Any) -> None:
    """Static pictures of %fluid explore and %fluid show --fold in an exported notebook: they fold and search."""
    sequences()
    shown = select(read_program(fluid.default_main_program()), fold=["layers"])
    page = browser.new_page()
    try:
        page.set_content(f"<body>{folding_html(shown)}</body>")
        everything, folded = page.locator("div div:visible").count(), page.locator("details:not([open])").count()
        assert folded > 0
        page.get_by_label("search operators").fill("lstm_grad")
        rows = page.locator("div div div:visible, summary:visible").all_inner_texts()
        assert 0 < len(rows) < everything and any("lstm_grad(" in row for row in rows)
        page.get_by_label("search operators").fill("")
        assert page.locator("details:not([open])").count() == folded
        assert page.locator("div div:visible").count() == everything
    finally:
        page.close()
