"""The debugger panel in JupyterLab: a walk both ways, together with the magics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.lab import Notebook
from tests.browser.panel import PROGRAM, PanelPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[[list[str]], Notebook]
BEGIN = "%fluid debug --feed x=X y=Y --fetch loss --panel"
WHERE = "%fluid where"


def opened(notebook: Open, *more: str) -> tuple[Notebook, PanelPage]:
    """A notebook with the program, and the panel of a session that stands at its first operator."""
    cells = [*PROGRAM, BEGIN, *more]
    nb = notebook(cells)
    for i in range(len(PROGRAM) + 1):
        nb.run(i)
    return nb, PanelPage(nb)


def test_a_walk_both_ways(notebook: Open, shots: Path) -> None:
    nb, panel = opened(notebook, WHERE, "%fluid step 2", "%fluid break op sgd")

    def agree() -> None:
        assert f"step {panel.step} " in nb.text(5) if nb.run(5) else False

    panel.at(0, reason="entry")
    panel.here("mul(X=x")
    agree()

    # a breakpoint by click, inside the loop
    panel.op("reduce_sum").locator(".fp-gutter").click()
    panel.root.locator(".fp-item", has_text="at 1:1").wait_for()
    panel.press("continue")
    panel.at(11, reason="breakpoint at 1:1")
    panel.here("reduce_sum")
    agree()
    panel.root.locator(".fp-frame", has_text="block 1, iteration 0").wait_for()

    # step into the second iteration of the body
    for step in range(12, 16):
        panel.press("step")
        panel.at(step)
    panel.root.locator(".fp-frame", has_text="block 1, iteration 0").locator("text=the end of the block").wait_for()
    panel.press("step")
    panel.at(16)
    panel.root.locator(".fp-frame", has_text="block 1, iteration 1").wait_for()
    agree()

    # a watch, a look at a tensor of the block around, and an edit
    panel.fill("add a watch", "total")
    panel.root.locator(".fp-item", has=panel.page.get_by_text("total", exact=True)).wait_for()
    panel.root.locator(".fp-frame", has_text="block 0").click()
    panel.value("h").click()
    panel.root.locator(".fp-opened h4", has_text="h").wait_for()
    before = panel.root.locator(".fp-cells tr").nth(1).locator("td").first.inner_text()
    panel.page.screenshot(path=shots / "panel_light.png")
    panel.fill("new value", "np.full((16, 10), 0.5)")
    panel.cell_of(0, 0, "0.5")
    panel.at(17, reason="set h")
    panel.press("back")
    panel.at(16)
    panel.cell_of(0, 0, before)
    agree()

    # what cannot be is told, and changes nothing
    panel.fill("new value", "np.zeros(3)")
    panel.root.locator(".fw-problem", has_text="another shape").wait_for()
    panel.at(16)

    # backwards to the breakpoint, then through time
    panel.press("rcontinue")
    panel.at(11, reason="backwards")
    panel.here("reduce_sum")
    agree()
    panel.root.locator(".fp-time").fill("3")
    panel.at(3, reason="went to step 3")
    panel.here("pred.tmp_0")
    agree()

    # the magics move the panel, and set its breakpoints
    nb.run(6)
    panel.at(5)
    nb.run(7)
    stop = panel.root.locator(".fp-item", has_text="op sgd")
    stop.wait_for()
    stop.locator(".fp-remove").click()
    stop.wait_for(state="detached")
    panel.op("reduce_sum").locator(".fp-gutter").click()
    panel.root.locator(".fp-item", has_text="at 1:1").wait_for(state="detached")

    # the end, and what the run fetches
    panel.press("continue")
    panel.root.locator(".fp-state", has_text="done").wait_for()
    agree()
    assert "fetch  loss" in nb.text(5)
    panel.press("restart")
    panel.at(0)
    assert not nb.errors


def test_keys_stay_in_the_panel(notebook: Open) -> None:
    nb, panel = opened(notebook)
    cells = panel.page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    panel.root.focus()
    for step, key in enumerate("sss", start=1):
        panel.page.keyboard.press(key)
        panel.at(step)
    panel.page.keyboard.press("b")
    panel.at(2)
    panel.page.keyboard.press("ArrowRight")
    panel.at(3)
    panel.page.keyboard.press("ArrowLeft")
    panel.at(2)
    for key in "ddxaymzz0":  # delete, cut, insert, to markdown, undo, restart in JupyterLab
        panel.page.keyboard.press(key)
    panel.page.keyboard.press("n")
    panel.at(3)
    assert cells.count() == count and panel.page.locator(".jp-Dialog").count() == 0

    # with the keyboard alone: down the listing, a breakpoint, a button, a box
    panel.root.locator(".fp-listing").focus()
    panel.page.keyboard.press("End")
    panel.page.keyboard.press("Enter")
    panel.root.locator(".fp-item").wait_for()
    panel.page.keyboard.press("c")
    panel.root.locator(".fp-reason", has_text="breakpoint at 0:").wait_for()
    panel.page.keyboard.press("C")
    panel.at(0)
    panel.root.locator(".fp-step.fp-move").focus()
    panel.page.keyboard.press("Enter")
    panel.at(1)
    box = panel.root.get_by_label("add a watch", exact=True).first
    box.focus()
    panel.page.keyboard.type("h.mean()")
    panel.page.keyboard.press("Enter")
    panel.root.locator(".fp-item", has_text="h.mean()").wait_for()
    panel.at(1)
    assert cells.count() == count
    tips = [b.get_attribute("title") for b in panel.root.locator(".fp-move").all()]
    assert len(tips) == 9 and all("key " in tip for tip in tips) and "%fluid rnext" in tips[2]
    assert not nb.errors


def test_cells_change_while_paused(notebook: Open) -> None:
    nb, panel = opened(notebook, "%fluid debug --feed x=X y=Y --fetch loss", "1 + 1")
    panel.press("step")
    panel.at(1)
    note = panel.root.locator(".fp-note", has_text="The program has changed since this run began")
    nb.set(1, PROGRAM[1].replace("size=10", "size=20"))
    nb.run(1)
    note.wait_for()
    panel.press("step")
    panel.at(2)
    panel.value("h.tmp_0").locator("text=float32[16, 10]").wait_for()
    nb.delete(3)
    nb.delete(2)
    nb.run(4)  # what is deleted is told with the next execution
    panel.press("step")
    panel.at(3)
    panel.press("continue")
    panel.root.locator(".fp-state", has_text="done").wait_for()
    panel.press("rcontinue")
    panel.at(0)
    nb.set(3, "%fluid debug --feed x=X --panel")
    nb.run(3)
    panel.root.locator(".fp-note", has_text="This session has ended").wait_for()
    assert panel.root.locator(".fp-move[aria-disabled=false]").count() == 0
    newer = PanelPage(nb, 1)
    newer.at(0)
    newer.root.locator(".fp-op", has_text="float32[-1, 20]").first.wait_for()
    newer.press("step")
    newer.at(1)
    assert not nb.errors


def test_a_tensor_beside_the_program(notebook: Open, shots: Path) -> None:
    nb, panel = opened(notebook)
    panel.at(0, reason="entry")
    panel.fill("add a watch", "nothing + 1")
    panel.root.locator(".fp-item", has_text='"nothing" has no value here.').wait_for()
    panel.value("x").click()
    value, program = panel.root.locator(".fp-opened"), panel.root.locator(".fp-program")
    value.wait_for()
    beside, left = value.bounding_box(), program.bounding_box()
    assert beside["x"] >= left["x"] + left["width"] and beside["y"] < left["y"] + left["height"]
    upright = value.locator(".fp-cells tr").nth(1).locator("td").all_inner_texts()
    value.get_by_label("axis of the rows").select_option("1")
    panel.cell_of(1, 0, upright[1])
    panel.value("x").hover()
    nb.page.mouse.down()
    nb.page.mouse.up()
    nb.page.mouse.down(click_count=2)  # the row may be drawn anew before the button is released
    value.locator(".fp-add input:focus").wait_for()
    nb.page.mouse.up(click_count=2)
    value.locator(".fp-add input:focus").wait_for()
    nb.page.keyboard.type("7")
    nb.page.keyboard.press("Enter")
    panel.cell_of(1, 0, "7")
    assert panel.op("relu").get_attribute("title").startswith("h = relu(")
    nb.page.screenshot(path=shots / "panel_beside.png")
    value.get_by_label("axis of the rows").select_option("0")
    panel.compares("x")


def test_a_double_click_on_a_row_that_moves(notebook: Open) -> None:
    nb, panel = opened(notebook)
    panel.at(0, reason="entry")
    panel.value("y").hover()
    first = panel.value("y").bounding_box()
    nb.page.mouse.down()
    nb.page.mouse.up()
    panel.root.locator(".fp-opened h4", has_text="y").wait_for()
    assert panel.value("y").bounding_box()["y"] > first["y"] + first["height"]  # not under the pointer any more
    nb.page.mouse.down(click_count=2)
    nb.page.mouse.up(click_count=2)
    panel.root.locator(".fp-opened input:focus").wait_for()
    nb.page.keyboard.type("7")
    nb.page.keyboard.press("Enter")
    panel.at(1, reason="set y")
    panel.root.locator(".fp-opened h4", has_text="y").wait_for()
    assert not nb.errors


def test_the_line_of_the_next_operator_is_marked(notebook: Open) -> None:
    nb, panel = opened(notebook)
    first, last = PROGRAM[1].splitlines()[3:]
    panel.lit(first)
    for step in range(1, 4):
        panel.press("step")
        panel.at(step)
    panel.lit(last)
    nb.set(1, PROGRAM[1].replace("size=1)", "size=2)"))
    panel.press("back")
    panel.at(2)
    panel.lit(first)
    panel.press("step")
    panel.at(3)
    panel.lit()  # the cell has another text there now
    panel.press("continue")
    panel.root.locator(".fp-state", has_text="done").wait_for()
    panel.lit()
    assert not nb.errors


def test_the_next_operator_in_c(notebook: Open, shots: Path) -> None:
    nb, panel = opened(notebook)
    panel.at(0, reason="entry")
    code = panel.root.locator(".fp-code")
    assert code.locator("pre").inner_text() == ""
    code.locator("summary").click()
    code.locator("pre", has_text="static void op_mul(const float *X, const float *Y, float *Out)").wait_for()
    panel.press("step")
    code.locator("pre", has_text="static void op_elementwise_add(").wait_for()
    nb.page.screenshot(path=shots / "panel_code.png")
    code.locator("summary").click()
    code.locator("pre", has_text="static").wait_for(state="hidden")
