"""A debugger panel without its kernel, and where no widgets can be shown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab import Lab, Notebook, opener
from tests.browser.panel import PROGRAM, PanelPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[[list[str] | Path], Notebook]
BEGIN = "%fluid debug --feed x=X y=Y --fetch loss --panel"
_SAVE = "async () => await window.jupyterapp.shell.currentWidget.context.save()"


def test_without_its_kernel_it_stays_readable(
    notebook: Open, running_lab: Lab, browser: Any, tmp_path: Path, shots: Path
) -> None:
    nb = notebook([*PROGRAM, BEGIN])
    for i in range(5):
        nb.run(i)
    panel = PanelPage(nb)
    still = nb.page.locator("[data-fluidnb-static]")
    assert still.count() == 1 and not still.is_visible()
    panel.press("step")
    panel.at(1)
    nb.page.wait_for_function("() => document.querySelector('[data-fluidnb-static]').textContent.includes('step 1 ')")
    nb.page.evaluate(_SAVE)
    panel.restart()
    panel.root.locator(".fw-problem", has_text="The kernel is not running; the last state is shown.").wait_for()
    panel.here("elementwise_add")
    assert panel.root.locator(".fp-move:enabled").count() == 0
    panel.root.locator(".fp-listing").focus()
    for key in ("s", "ArrowDown", "Enter", "d", "d"):
        nb.page.keyboard.press(key)
    panel.at(1)
    assert panel.root.locator(".fp-item").count() == 0 and nb.page.locator(".jp-Notebook .jp-Cell").count() == 5
    assert not nb.errors

    # opened again, where nothing but the file is left
    saved = running_lab.root / "test_panel_left__test_without_its_kernel_it_stays_readable.ipynb"
    again = opener(running_lab, browser)("opened_again", saved)
    face = again.page.locator("[data-fluidnb-static]")
    face.locator("text=step 1 ").first.wait_for()
    again.page.screenshot(path=shots / "panel_opened_again.png")
    assert face.is_visible() and "elementwise_add" in face.inner_text()

    again.page.context.close()

    # and as a page
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path), str(saved)],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    [page] = tmp_path.glob("*.html")
    text = page.read_text("utf-8")
    assert text.count('<div data-fluidnb-static="') == 1 and "elementwise_add" in text
    assert text.count("  step 1<") + text.count("  step 1 ") == 1


def test_stock_widgets(notebook: Open) -> None:
    nb = notebook([*PROGRAM, BEGIN.replace(" --panel", ""), "%fluid panel --plain", "%fluid step 2", "%fluid where"])
    for i in range(6):
        nb.run(i)
    root = nb.cell(5).locator(".widget-vbox").first
    root.locator("text=step 0").first.wait_for()
    root.get_by_role("button", name="step").first.click()
    root.locator("text=step 1 ").first.wait_for()
    nb.run(6)
    root.locator("text=step 3 ").first.wait_for()
    line = root.get_by_placeholder("a command")
    line.fill("break op mean")
    line.press("Enter")
    root.locator("text=op mean").first.wait_for()
    root.get_by_role("button", name="continue").click()
    root.locator("text=breakpoint op mean").first.wait_for()
    assert "breakpoint op mean" in nb.text(7) if nb.run(7) else False
    line.fill("prnt x")
    line.press("Enter")
    root.locator("text=There is no command prnt").first.wait_for()
    assert not nb.errors


def test_five_thousand_operators(notebook: Open, shots: Path) -> None:
    many = (
        "%%fluid\nx = layers.data('x', shape=[8])\nh = x\n"
        "for k in range(2500):\n    h = layers.relu(layers.scale(h, scale=0.999))"
    )
    nb = notebook([PROGRAM[0].replace("rand(16, 4)", "rand(4, 8)"), many, "%fluid debug --feed x=X --panel"])
    for i in range(3):
        nb.run(i)
    panel = PanelPage(nb)
    assert panel.root.locator(".fp-op").count() < 100
    panel.fill("add a breakpoint", "at 0:4990")
    panel.press("continue")
    panel.at(4990)
    panel.here("relu" if 4990 % 2 else "scale")
    assert panel.root.locator(".fp-op.fp-here").is_visible()
    panel.root.locator(".fp-scope", has_text="4,991 variables").wait_for()
    panel.root.locator(".fp-values").evaluate("e => { e.scrollTop = e.scrollHeight; }")
    panel.value("h_2494").locator("text=float32[4, 8]").wait_for()
    panel.press("step")
    panel.at(4991)
    panel.press("restart")
    panel.at(0)
    assert panel.root.locator(".fp-op.fp-here").is_visible()
    assert not nb.errors
