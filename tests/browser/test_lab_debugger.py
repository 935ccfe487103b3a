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

#: The longest time between two frames of thirty that the page draws.
FRAMES = """() => new Promise(done => { const at = []; const tick = t => { at.push(t);
    at.length < 30 ? requestAnimationFrame(tick) : done(Math.max(...at.slice(1).map((t, i) => t - at[i])));
}; requestAnimationFrame(tick); })"""


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


def test_the_console_keeps_the_focus(notebook: Open) -> None:
    nb = notebook([LOAD, LOOP, RUN])
    panel = Debugger(nb)
    nb.run(0)
    nb.run(1)
    panel.switch()
    panel.click(1, 9)
    panel.start(2)
    panel.until_lit(1, 9, "block 1, iteration 0: 1 scale")
    assert panel.evaluate("i[0] + 1") == "2"
    panel.until_row("x", "1 ± 0")
    panel.until_prompt()
    for command, line, frame in (
        ("%fluid back", 8, "iteration 0: 0 increment"),
        ("%fluid step", 9, "iteration 0: 1 scale"),
        ("%fluid edit x = 2", 9, "iteration 0: 1 scale"),
        ("%fluid continue", 9, "iteration 1: 1 scale"),
        ("%fluid back 100", 2, "block 0: 0 fill_constant"),
    ):
        panel.evaluate(command, click=False)
        panel.until_lit(1, line, frame)
        panel.until_prompt()
        nb.page.keyboard.type("x")  # in the notebook it would cut a cell
        panel.until_prompt("x")
        nb.page.keyboard.press("Backspace")
    panel.click(1, 9)
    panel.evaluate("%fluid continue")
    panel.until_dark()
    nb.page.locator(".jp-Notebook .jp-OutputArea-output", has_text="[512]").wait_for()
    assert nb.page.locator(".jp-Notebook .jp-Cell").count() == 3
    assert not nb.errors


def test_magics_and_panel_move_each_other(notebook: Open) -> None:
    cells = [LOAD, LOOP, "%fluid debug --fetch total", "%fluid until line net:9", "%fluid back", "%fluid where"]
    nb = notebook([*cells, "%fluid continue", "%fluid debug off"])
    panel = Debugger(nb)
    for cell in range(4):
        nb.run(cell)
    panel.switch()  # only now, and still it shows where the session stands
    panel.until_lit(1, 9, "block 1, iteration 0: 1 scale")
    nb.run(4)
    panel.until_lit(1, 8, "block 1, iteration 0: 0 increment")
    assert "▶ 0  i = increment(i" in nb.run(5)
    panel.press("next")
    panel.until_lit(1, 9, "block 1, iteration 0: 1 scale")
    assert "▶ 1  y = scale(x" in nb.run(5)
    panel.press("stepOut")
    panel.until_lit(1, 12, "block 0: 5 reduce_sum")
    nb.run(4)
    panel.until_lit(1, 11, "block 1, iteration 2: the end")
    panel.choose_scope("block 0")
    panel.until_row("n", "[3]")
    nb.run(6)
    panel.until_dark()
    nb.run(4)
    panel.until_lit(1, 12, "block 0: 5 reduce_sum")
    nb.run(7)
    panel.until_dark()
    assert not nb.errors


def test_python_in_the_same_kernel(notebook: Open) -> None:
    function = "def double(a):\n    b = a * 2\n    return b"
    nb = notebook([LOAD, LOOP, function, "print(double(4))", RUN, "%fluid debug --fetch total"])
    panel = Debugger(nb)
    panel.switch()
    for cell in range(3):
        nb.run(cell)
    panel.click(2, 2)
    panel.click(1, 12)
    assert sorted(panel.breakpoints()) == [2, 12]

    def python_stops() -> None:
        panel.start(3)
        panel.until_lit(2, 2, "double")
        panel.until_row("a", "4")
        panel.press("next")
        panel.until_lit(2, 3, "double")
        panel.press("continue")

    python_stops()
    panel.until_dark()
    panel.start(4)
    panel.until_lit(1, 12, "block 0: 5 reduce_sum")
    panel.press("continue")
    panel.until_shown(4, "[512]")
    panel.until_dark()
    nb.run(5)
    panel.until_lit(1, 2, "block 0: 0 fill_constant")
    python_stops()
    panel.until_lit(1, 2, "block 0: 0 fill_constant")  # Python has gone on, the program stands as it did
    panel.press("next")
    panel.until_lit(1, 3, "block 0: 1 fill_constant")
    assert not nb.errors


def test_cells_change_while_it_stands(notebook: Open) -> None:
    nb = notebook([LOAD, LOOP, "%fluid debug --fetch total", "%fluid where", RUN])
    panel = Debugger(nb)
    panel.switch()
    for cell in range(3):
        nb.run(cell)
    panel.until_lit(1, 2, "block 0: 0 fill_constant")
    notebook_id = nb.page.evaluate("() => window.jupyterapp.shell.currentWidget.id")
    nb.set(1, LOOP.replace("scale=2.0", "scale=3.0"))
    nb.run(1)
    assert "paused" in nb.run(3)
    panel.press("next")
    panel.until_frame("1 fill_constant")
    # The text of which the operators were made is gone from the notebook: it is shown beside it.
    nb.page.wait_for_selector(".jp-MainAreaWidget .cm-line.jp-DebuggerEditor-highlight")
    nb.page.evaluate("id => window.jupyterapp.shell.activateById(id)", notebook_id)
    panel.press("continue")
    panel.until_dark()
    panel.until_alone()
    panel.click(1, 9)
    panel.start(4)
    panel.until_lit(1, 9, "block 1, iteration 0: 1 scale")
    nb.delete(1)
    panel.press("stepOut")  # the click is still there
    panel.until_frame("block 1, iteration 1: 1 scale")
    panel.press("continue")
    panel.until_frame("block 1, iteration 2: 1 scale")
    panel.press("continue")
    panel.until_frame("")
    assert not nb.errors


def test_a_long_run_can_be_paused(notebook: Open) -> None:
    endless = LOOP.replace("[1], 'int64', 3)", "[1], 'int64', 1 << 60)").replace("scale=2.0", "scale=1.0")
    nb = notebook([LOAD, endless, RUN])
    panel = Debugger(nb)
    panel.switch()
    nb.run(0)
    nb.run(1)
    panel.click(1, 8)
    panel.start(2)
    panel.until_lit(1, 8, "block 1, iteration 0: 0 increment")
    panel.click(1, 8)
    for _ in range(2):
        panel.press("continue")
        panel.until_dark()
        assert nb.page.evaluate(FRAMES) < 2000, "the page stood still while the program ran"
        panel.press("continue")  # the same button: pause
        panel.until_frame("block 1")
    nb.page.evaluate("() => window.jupyterapp.commands.execute('notebook:interrupt-kernel')")
    panel.until_shown(2, "The run was left paused.")
    assert not nb.errors


def test_a_kernel_restarts_while_it_stands(notebook: Open) -> None:
    nb = notebook([LOAD, LOOP, RUN])
    panel = Debugger(nb)
    panel.switch()
    nb.run(0)
    nb.run(1)
    panel.click(1, 9)
    panel.start(2)
    panel.until_lit(1, 9, "block 1, iteration 0: 1 scale")
    kernel = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel"
    nb.page.evaluate(f"() => {{ void {kernel}.restart(); }}")
    panel.until_dark()
    nb.page.wait_for_function(f"() => {kernel}?.status === 'idle'")
    nb.page.wait_for_selector('.jp-NotebookPanel[data-jp-debugger="true"]')
    nb.run(0)
    nb.run(1)
    panel.start(2)
    panel.until_lit(1, 9, "block 1, iteration 0: 1 scale")
    panel.click(1, 9)
    panel.press("continue")
    panel.until_shown(2, "[512]")
