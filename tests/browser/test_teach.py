"""The widgets that teach, in JupyterLab: what is typed, chosen and pressed shows what the models say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fluidnb.viz import plain
from fluidnb.viz.lessons.backward.model import read_backward_example
from fluidnb.viz.lessons.backward.renderings import step_lines
from fluidnb.viz.lessons.lod.model import read_lod_lesson
from fluidnb.viz.lessons.optimizer.model import parse_choice, read_optimizer_lesson
from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Opens = Callable[[list[str]], Notebook]


def shows(widget: Any, text: str) -> None:
    """Wait until a widget's picture has a text."""
    widget.locator(".picture", has_text=text).wait_for()


def slide(widget: Any, step: int) -> None:
    """Move the slider as a user's hand does."""
    slider = widget.locator("input[type=range]")
    slider.evaluate("(el, v) => { el.value = v; el.dispatchEvent(new Event('input', {bubbles: true})); }", str(step))


def pictures(nb: Notebook, widget: Any, shots: Path, name: str) -> None:
    """A screenshot of a widget in light and in dark."""
    for dark in (False, True):
        nb.use_theme(dark)
        widget.scroll_into_view_if_needed()
        widget.screenshot(path=shots / f"{name}_{'dark' if dark else 'light'}.png")
    nb.use_theme(False)


def test_sequences(notebook: Opens, shots: Path) -> None:
    nb = notebook(["%load_ext fluidnb\n%fluid teach lod"])
    nb.run(0)
    widget = nb.page.locator(".fw-lod_lesson")
    shows(widget, "The batch is rows 0 10 5 8 of x.")
    lengths = widget.get_by_label("lengths")
    lengths.fill("3 1 4")
    lesson = read_lod_lesson([[3, 1, 4]])
    widget.locator("output", has_text=f"0 of 0 to {lesson.longest - 1}").wait_for()
    assert widget.locator("g.part").count() == lesson.rows
    slide(widget, 2)
    shows(widget, "memory at step 2")
    rows = " ".join(str(row) for part in lesson.steps[2].parts for row in part)
    assert f"The batch is rows {rows} of x." in widget.text_content()
    assert widget.locator("g.part.now").count() == len(lesson.steps[2].memory) == 2
    assert widget.locator("g.memory.over").count() == 1
    widget.locator("svg").click()  # keys belong to the widget now, and not to the notebook's cells
    nb.page.keyboard.press("ArrowRight")
    shows(widget, "memory at step 3")
    nb.page.keyboard.press("Home")
    shows(widget, "memory at step 0")
    lengths.fill("2 2 / 2 3 1")
    widget.locator(".fw-problem", has_text="[··][·?]  1 sequence is missing: level 1 has 3").wait_for()
    assert "at:" not in widget.locator(".fw-problem").text_content()
    assert "memory at step 0" in widget.text_content()
    lengths.fill("2 1 / 2 3 1")
    shows(widget, "0 to 1")
    widget.locator(".fw-problem").wait_for(state="hidden")
    widget.get_by_label("ranked level").select_option("1")
    widget.locator("g.part").nth(5).wait_for()
    assert widget.locator("g.part").count() == 6
    lengths.fill("5 3 2 4")
    widget.locator("g.part").nth(13).wait_for()
    slide(widget, 2)
    shows(widget, "Sequence 2 has finished")
    pictures(nb, widget, shots, "teach_lod")
    assert not nb.errors


def test_optimizers(notebook: Opens, shots: Path) -> None:
    nb = notebook(["%load_ext fluidnb\n%fluid teach optimizer rosenbrock SGD Momentum"])
    nb.run(0)
    widget = nb.page.locator(".fw-optimizer_lesson")
    shows(widget, "SGD 0.4")
    widget.locator(".runner").nth(0).get_by_label("optimizer", exact=True).select_option("Adam")
    shows(widget, "w_moment1_0")
    [track] = read_optimizer_lesson("rosenbrock", [parse_choice("Adam")]).tracks
    assert f"{track.heights[60]:.4g}" in widget.text_content()
    assert "adam(" in widget.text_content()
    slide(widget, 7)
    shows(widget, "gradient of step 7")
    assert f"{track.heights[7]:.4g}" in widget.text_content()
    assert widget.locator("circle.dot").count() == 7
    rate = widget.locator(".runner").nth(0).get_by_label("learning rate", exact=True)
    rate.fill("0.05")
    rate.press("Enter")
    shows(widget, "Adam 0.05")
    rate = widget.locator(".runner").nth(0).get_by_label("learning rate", exact=True)
    rate.fill("fast")
    rate.press("Enter")
    widget.locator(".fw-problem", has_text="A learning rate is a number").wait_for()
    shows(widget, "Adam 0.05")
    widget.locator(".runner").nth(0).get_by_label("learning rate schedule").select_option("exponential")
    widget.locator(".fw-problem", has_text="A learning rate is a number").wait_for()
    rate.fill("0.3")
    rate.press("Enter")
    shows(widget, "Adam 0.3 exponential")
    widget.locator(".fw-problem").wait_for(state="hidden")
    widget.get_by_text("+ optimizer").click()
    widget.locator(".runner").nth(2).wait_for()
    shows(widget, "SGD 0.4")
    widget.get_by_label("surface").select_option("saddle")
    shows(widget, "A saddle")
    widget.get_by_label("surface").select_option("rosenbrock")
    shows(widget, "A bent valley")
    widget.locator(".runner").nth(0).get_by_text("●").click()
    slide(widget, 45)
    shows(widget, "gradient of step 45")
    pictures(nb, widget, shots, "teach_optimizer")
    assert not nb.errors


def test_backward(notebook: Opens, shots: Path) -> None:
    nb = notebook(
        [
            "%load_ext fluidnb\n%fluid teach backward",
            "%%fluid net\nx = layers.data('x', [4])\nh = layers.fc(x, 2)\nloss = layers.mean(h * h)",
            "%fluid teach backward net",
        ]
    )
    nb.run(0)
    widget = nb.page.locator(".fw-backward_lesson").first
    lesson = read_backward_example("shared")
    shows(widget, "Backward begins at loss.")
    for step in range(1, 10):
        widget.get_by_label("one step forward").click()
        shows(widget, plain(step_lines(lesson, step)[:1]))
    assert "h@GRAD@RENAME@block0@1" in widget.locator("g.back.renamed").nth(1).text_content()
    assert widget.locator("g.back").count() == len(lesson.steps[9].listing)
    assert widget.locator("g.back.new", has_text="sum").count() == 1
    assert widget.locator(".arrow.now").count() == 2
    pictures(nb, widget, shots, "teach_backward")
    widget.locator("svg g.fore").nth(6).click()
    shows(widget, "No gradient reaches largest")
    nb.page.keyboard.press("End")
    shows(widget, "fc_1.w_0 with fc_1.w_0@GRAD")
    excluded = widget.get_by_label("no_grad_set")
    excluded.fill("left")
    excluded.press("Enter")
    widget.locator("svg g.back", has_text="@RENAME@").first.wait_for(state="detached")
    assert widget.locator("g.back", has_text="square_grad").count() == 1
    widget.get_by_label("program").select_option("example loop")
    slide(widget, 8)
    shows(widget, "The gradient block is written. while_grad runs it once for each iteration")
    pictures(nb, widget, shots, "teach_backward_loop")
    nb.run(1)
    nb.run(2)
    shows(nb.page.locator(".fw-backward_lesson").nth(1), "The gradient maker of mean")
    assert "%%fluid net" in nb.cell(1).text_content()  # keys have not reached the notebook
    assert not nb.errors


def test_without_a_kernel_they_are_readable_and_dead(notebook: Opens, shots: Path) -> None:
    nb = notebook(["%load_ext fluidnb\n%fluid teach backward --step 9", "%fluid teach lod", "%fluid teach optimizer"])
    for i in range(3):
        nb.run(i)
    widgets = [nb.page.locator(f".fw-{name}_lesson") for name in ("backward", "lod", "optimizer")]
    for widget, text in zip(widgets, ("h@GRAD@RENAME@block0@1", "memory at step 0", "w_velocity_0"), strict=True):
        if text == "w_velocity_0":
            widget.locator(".runner").nth(1).get_by_text("●").click()
        shows(widget, text)
    nb.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    for widget, text in zip(widgets, ("h@GRAD@RENAME@block0@1", "memory at step 0", "w_velocity_0"), strict=True):
        widget.locator("xpath=self::*[contains(@class, 'fw-dead')]").wait_for()
        shows(widget, text)
        controls = widget.locator("input, select, button")
        assert all(controls.nth(i).is_disabled() for i in range(controls.count()))
    nb.page.screenshot(path=shots / "teach_dead.png")
    assert not nb.errors
