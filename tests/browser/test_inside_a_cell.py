"""What works in any cell works in a %%fluid cell: Tab, Shift-Tab, ?, %time, !, a last expression, errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOAD = "%load_ext fluidnb"
DATA = "%%fluid\nx = layers.data('x', shape=[4])"
Open = Callable[[list[str]], Notebook]


def test_tab_completes(notebook: Open) -> None:
    nb = notebook([LOAD, DATA, "%%fluid\n", "%fluid "])
    nb.run(0)
    nb.run(1)
    nb.edit(2, "h = layers.squ")
    nb.page.keyboard.press("Tab")
    found = nb.page.locator(".jp-Completer")
    found.get_by_text("square_error_cost").first.wait_for()
    nb.page.keyboard.press("Escape")
    nb.page.keyboard.type("are(x)\nx.sha")
    nb.page.keyboard.press("Tab")
    found.get_by_text("shape").first.wait_for()
    nb.page.keyboard.press("Escape")
    nb.edit(3, "tr")
    nb.page.keyboard.press("Tab")
    found.get_by_text("train").first.wait_for()


def test_shift_tab_explains(notebook: Open) -> None:
    nb = notebook([LOAD, "%%fluid\n"])
    nb.run(0)
    nb.edit(1, "h = layers.fc")
    nb.page.keyboard.press("Shift+Tab")
    tip = nb.page.locator(".jp-Tooltip")
    tip.wait_for()
    assert "num_flatten_dims" in tip.inner_text()


def test_question_mark_time_shell_and_last_expression(notebook: Open) -> None:
    cell = "%%fluid\n%time h = layers.fc(x, 3)\nfiles = !echo one two\nprint(files)\nlayers.relu?\nh"
    nb = notebook([LOAD, DATA, cell, "print(h.name, h.param.name, _)", "%%fluid\nlayers.scale(x, 2.0);"])
    for i in range(5):
        nb.run(i)
    text = nb.text(2)
    assert "Wall time" in text
    assert "['one two']" in text
    assert "Variable h: float32[-1, 3]" in text
    assert [o["execution_count"] for o in nb.outputs(2) if o["output_type"] == "execute_result"] == [3]
    nb.page.locator(
        ".jp-Dialog, .jp-Pager, .jp-MimeDocument, #jp-down-stack, .jp-CodeConsole, .jp-RenderedText"
    ).first.wait_for()
    assert nb.text(3).startswith("h h.w_0 Variable h"), nb.text(3)
    assert not [o for o in nb.outputs(4) if o["output_type"] == "execute_result"]


def test_errors_speak_of_the_cell(notebook: Open) -> None:
    nb = notebook(
        [LOAD, DATA, "%%fluid\nh = layers.fc(x, 3)\n\nz = layers.elementwise_add(x, h)", "%%fluid\nz = x.nope"]
    )
    for i in range(4):
        nb.run(i)
    text = nb.text(2)
    assert "cell In[3], line 4" in text
    assert "z = layers.elementwise_add(x, h)" in text
    for i in (2, 3):
        assert "/fluidnb" not in nb.text(i), "frames of our own"
        assert "run_cell_magic" not in nb.text(i)
    assert "z = x.nope" in nb.text(3)
