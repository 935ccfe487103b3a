"""The debugger panel while programs run: pausing, cells that wait for it, kernels that are interrupted."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.browser.lab import Notebook
from tests.browser.panel import PROGRAM, PanelPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[[list[str]], Notebook]
#: A loop that no machine ends while a test runs: somebody has to stop it.
LOOP = [
    "%load_ext fluidnb",
    "%%fluid\ni = layers.fill_constant([1], 'int64', 0)\nn = layers.fill_constant([1], 'int64', 10**9)\n"
    "more = layers.less_than(i, n)\nloop = layers.While(more)\nwith loop.block():\n    layers.increment(i)\n"
    "    layers.less_than(i, n, cond=more)",
]
#: Counts the page's frames from now on, and the longest time between two.
FRAMES = """() => { window.frames_ = 0; window.longest_ = 0; let last = performance.now();
    const tick = now => { window.frames_++; window.longest_ = Math.max(window.longest_, now - last); last = now;
        requestAnimationFrame(tick); }; requestAnimationFrame(tick); }"""


def test_a_long_run_is_paused_and_the_page_answers(notebook: Open) -> None:
    nb = notebook([*LOOP, "%fluid debug --panel", "%fluid step", "%fluid continue"])
    for i in range(3):
        nb.run(i)
    panel = PanelPage(nb)
    panel.at(0)
    nb.page.evaluate(FRAMES)
    panel.press("continue")
    panel.root.locator(".fp-state", has_text="running").wait_for()
    first = panel.step
    panel.past(first)
    frames = nb.page.evaluate("window.frames_")
    nb.page.wait_for_function("n => window.frames_ > n + 10", arg=frames)
    panel.press("pause")
    panel.root.locator(".fp-state", has_text="paused").wait_for()
    panel.root.locator(".fp-reason", has_text="paused").wait_for()
    stood = panel.step
    assert first < stood
    nb.run(3)
    panel.at(stood + 1)

    # a cell that walks: the button pauses it, and so does the kernel's interrupt
    panel.begin(4)
    panel.root.locator(".fp-state", has_text="running").wait_for()
    panel.press("pause")
    panel.says(4, "paused")
    panel.root.locator(".fp-state", has_text="paused").wait_for()
    stood = panel.step
    panel.begin(4)
    panel.root.locator(".fp-state", has_text="running").wait_for()
    panel.past(stood)
    panel.interrupt()
    panel.root.locator(".fp-state", has_text="paused").wait_for()
    assert panel.step > stood
    assert not nb.errors


def test_a_busy_cell_waits_for_the_panel(notebook: Open) -> None:
    train = (
        "exe = fluid.Executor(fluid.CPUPlace()); exe.run(fluid.default_startup_program())\n"
        "for k in range(3):\n    print('loss', k, exe.run(feed={'x': X, 'y': Y}, fetch_list=[loss])[0].shape)"
    )
    nb = notebook([*PROGRAM, "%fluid debug on --panel", "%fluid break op mean", train, "%fluid where"])
    for i in range(len(PROGRAM) + 2):
        nb.run(i)
    panel = PanelPage(nb)
    panel.begin(6)
    waits = panel.root.locator(".fp-waits")
    for _ in range(2):
        panel.root.locator(".fp-reason", has_text="breakpoint op mean").wait_for()
        waits.wait_for()
        at = panel.step
        panel.here("= mean(")
        panel.press("step")
        panel.at(at + 1)
        panel.press("back")
        panel.at(at)
        panel.press("continue")
        nb.page.wait_for_function(
            "n => Number(document.querySelector('.fp-count').textContent.replace(/\\D/g, '')) > n", arg=at + 10
        )
    panel.root.locator(".fp-run", has_text="run 2").wait_for()

    # interrupting the kernel leaves the run where it stands, and the panel can go on with it
    panel.root.locator(".fp-reason", has_text="breakpoint op mean").wait_for()
    waits.wait_for()
    panel.says(6, "loss 1")
    panel.interrupt()
    panel.says(6, "Stopped")
    waits.wait_for(state="hidden")
    panel.press("next")
    panel.root.locator(".fp-reason", has_text="after 1 operator").wait_for()
    assert f"step {panel.step} " in nb.run(7)

    # the button ends the cell as well
    panel.begin(6)
    waits.wait_for()
    waits.locator("button").click()
    waits.wait_for(state="hidden")
    nb.page.wait_for_function(
        "() => JSON.stringify(window.jupyterapp.shell.currentWidget.content.widgets[6].model.toJSON().outputs)"
        ".includes('Stopped')"
    )
    assert not nb.errors


def test_an_error_is_told_in_words_and_numbers_that_are_none_are_red(notebook: Open) -> None:
    cells = [
        "%load_ext fluidnb\nimport numpy as np\nX = np.array([[1, 2], [-1, 0]], 'float32')",
        "%%fluid\nx = layers.data('x', shape=[2])\nl = layers.log(x)\nr = layers.reshape(l, [-1, 3])",
        "%fluid run --feed x=X --fetch r",
        "%fluid debug --panel",
    ]
    nb = notebook(cells)
    for i in range(4):
        nb.run(i)
    panel = PanelPage(nb)
    panel.at(1, "failed", "the operator failed")
    panel.root.locator(".fp-wrong", has_text="reshape").wait_for()
    bad = panel.root.locator(".fp-values .fp-bad", has_text="NaN")
    bad.wait_for()
    red = "getComputedStyle(document.querySelector('.fp-values .fp-bad')).color"
    channels = [float(part) for part in re.findall(r"[0-9.]+", nb.page.evaluate(red))][:3]
    assert channels[0] > max(channels[1:]) + 0.2  # light or dark theme
    panel.press("back")
    panel.at(0)
    panel.root.locator(".fp-wrong").wait_for(state="hidden")
    assert not nb.errors
