"""The program explorer in JupyterLab: search, folds, links, graphs; other widgets, cells and the debugger move it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[[list[str]], Notebook]

CELLS = [
    "%load_ext fluidnb\nimport numpy as np",
    "%%fluid data\nx = layers.data('x', shape=[4])\ny = layers.data('y', shape=[1])",
    "%%fluid net\nh = layers.fc(x, size=8, act='relu')\npred = layers.fc(h, size=1)",
    "%%fluid loss\nloss = layers.mean(layers.square_error_cost(pred, y))\nfluid.optimizer.SGD(0.05).minimize(loss);",
    "%%fluid count\ni = layers.fill_constant([1], 'int64', 0)\nn = layers.fill_constant([1], 'int64', 10)\n"
    "more = layers.less_than(i, n)\nloop = layers.While(more)\nwith loop.block():\n"
    "    i = layers.increment(i, value=1, in_place=True)\n    more = layers.less_than(i, n, cond=more)",
    "%fluid explore",
]


class Explorer:
    """An explorer in a notebook.

    Args:
        nb: the notebook.
        cell: the cell that shows it.
    """

    def __init__(self, nb: Notebook, cell: int) -> None:
        self.nb = nb
        self.root = nb.cell(cell).locator(".fw-explorer")
        self.root.wait_for()
        self.root.scroll_into_view_if_needed()

    def row(self, name: str) -> Any:
        """The row of an operator that is in view, by its place as 0:12."""
        return self.root.locator(".fe-row", has=self.nb.page.locator(f".fe-name:text-is('{name}')"))

    def names(self) -> list[str]:
        """The names of the rows in view, from top to bottom."""
        found: list[tuple[float, str]] = self.root.locator(".fe-row").evaluate_all(
            "all => all.map(e => [parseFloat(e.style.top), e.querySelector('.fe-name')?.textContent ?? ''])"
        )
        return [name for _, name in sorted(found)]

    def card(self, text: str) -> None:
        """Wait until the card says something."""
        self.root.locator(".fe-card", has_text=text).wait_for()

    def search(self, words: str) -> None:
        """Type into the search."""
        self.root.locator(".fe-search").fill(words)

    def count(self, text: str) -> None:
        """Wait until so many are found."""
        self.root.locator(f".fe-count:text-is('{text}')").wait_for()

    def link(self, section: str, text: str) -> Any:
        """A link in a section of the card."""
        return self.root.locator("section", has_text=section).locator(".fe-link", has_text=text).first


def opened(notebook: Open, *more: str) -> Notebook:
    """A notebook with the cells run, and more of them."""
    nb = notebook([*CELLS, *more])
    for i in range(len(CELLS) + len(more)):
        nb.run(i)
    return nb


def test_search_fold_and_links(notebook: Open, shots: Path) -> None:
    nb = opened(notebook)
    page, ex = nb.page, Explorer(nb, 5)
    assert ex.names()[:3] == ["0:0", "0:1", "0:2"]
    assert "27 ops" in ex.root.locator(".fe-title").inner_text()
    tree = ex.root.locator("[role=tree]")
    tree.locator("[role=treeitem][aria-level='2']").nth(1).wait_for()  # the body of the loop

    ex.search("op:mul")
    ex.count("4 found")
    page.keyboard.press("Enter")
    ex.count("1 of 4")
    page.keyboard.press("Enter")
    ex.count("2 of 4")
    ex.card("0:3 mul")
    page.keyboard.press("Shift+Enter")
    ex.count("1 of 4")
    ex.root.locator(".fe-only input").check()
    assert ex.names() == ["0:0", "0:3", "0:13", "0:16"]
    ex.search('cell:net "attr:axis=1"')
    ex.count("2 found")
    page.keyboard.press("Escape")
    page.wait_for_function("n => document.querySelectorAll('.fw-explorer .fe-row').length > n", arg=15)

    ex.row("0:2").click()
    ex.card("Out = max(X, 0)")
    assert "h = layers.fc(x, size=8, act='relu')" in ex.root.locator(".fe-source").inner_text()
    ex.link("reads", "elementwise_add").click()
    ex.card("0:1 elementwise_add")
    ex.link("writes", "relu").click()
    ex.card("0:2 relu")
    ex.link("its gradient", "relu_grad").click()
    ex.card("0:14 relu_grad")
    ex.link("gradient of", "relu").click()
    ex.link("writes", "h").click()
    ex.card("none in the scope")
    ex.link("read by", "mul_grad").click()
    ex.card("0:13 mul_grad")
    page.keyboard.press("Alt+ArrowLeft")
    ex.card("read by")
    page.keyboard.press("Alt+ArrowRight")
    ex.card("0:13 mul_grad")

    ex.root.locator(".fe-chip", has_text="optimizer").click()
    assert ex.names() == ["0:17", "0:18", "0:19", "0:20"]
    ex.root.locator(".fe-chip", has_text="optimizer").click()
    ex.root.locator("select[aria-label=fold]").select_option("cells")
    folded = ex.root.locator(".fe-row[aria-expanded=false]")
    assert "cell net  5 ops" in folded.first.inner_text()
    assert tree.locator(".fe-row").count() < 8
    folded.first.locator(".fe-fold").click()
    assert ex.names()[1:6] == [f"0:{i}" for i in range(5)]
    ex.root.locator("select[aria-label=fold]").select_option("")
    for dark in (False, True):
        nb.use_theme(dark)
        page.screenshot(path=shots / f"explorer_{'dark' if dark else 'light'}.png")
    assert not nb.errors


SEARCHES = (
    "mul",
    "op:*_grad",
    "var:h",
    "var:h*",
    "var:pred.?_0",
    "attr:axis=1",
    '"attr:shape=[1]"',
    "cell:net relu",
    "LOSS",
)


def test_a_search_finds_what_fluid_show_finds(notebook: Open) -> None:
    count = (
        "from fluidnb.viz import read_program, select\nwhole = read_program(fluid.default_main_program())\n"
        f"print([select(whole, words).size for words in {SEARCHES!r}])"
    )
    nb = notebook([*CELLS[:4], "%fluid explore", count])
    for i in range(6):
        nb.run(i)
    ex = Explorer(nb, 4)
    wanted = json.loads(nb.text(5))
    assert 0 < min(wanted) and max(wanted) < 21
    for words, size in zip(SEARCHES, wanted, strict=True):
        ex.search(words)
        ex.count(f"{size} found")
    assert not nb.errors


def test_keys_stay_inside(notebook: Open) -> None:
    nb = opened(notebook)
    page, ex = nb.page, Explorer(nb, 5)
    cells = nb.page.locator(".jp-Notebook .jp-Cell").count()
    ex.row("0:0").click()
    ex.root.locator("[role=tree]").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    ex.card("0:1 elementwise_add")
    for key in ("a", "b", "d", "d", "x"):  # JupyterLab would add and delete cells
        page.keyboard.press(key)
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    page.keyboard.press("End")
    ex.card("1:1 less_than")
    page.keyboard.press("ArrowLeft")
    ex.card("0:24 while")
    page.keyboard.press("ArrowLeft")
    loop = ex.row("0:24")
    assert loop.get_attribute("aria-expanded") == "false"
    assert "2 ops" in loop.inner_text()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    assert ex.row("0:24").get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowRight")
    ex.card("1:0 increment")
    page.keyboard.press("/")
    page.keyboard.type("sgd")
    ex.count("4 found")
    page.keyboard.press("Escape")
    assert ex.root.locator(".fe-search").input_value() == ""
    page.keyboard.press("Escape")
    page.keyboard.press("Home")
    ex.card("0:0 mul")
    active = ex.root.locator("[role=tree]").get_attribute("aria-activedescendant")
    assert ex.root.locator(f"[id='{active}']").get_attribute("aria-selected") == "true"
    assert not nb.errors


def test_a_level_as_a_graph(notebook: Open, shots: Path) -> None:
    long = "%%fluid long\nz = layers.relu(x)\nfor _ in range(400):\n    z = layers.relu(z)"
    nb = notebook([*CELLS[:2], long, "%fluid explore"])
    for i in range(4):
        nb.run(i)
    ex = Explorer(nb, 3)
    ex.root.get_by_text("Graph", exact=True).click()
    nodes = ex.root.locator(".fe-node")
    nodes.first.wait_for()
    assert nodes.count() <= 300
    ex.root.locator(".fe-path", has_text="folded to").wait_for()
    ex.root.locator(".fe-path", has_text="folded to 21 nodes").wait_for()
    nodes.nth(1).click()
    ex.root.locator(".fe-path", has_text="0:20-39").wait_for()
    ex.root.locator(".fe-path", has_text="20 ops").wait_for()
    nodes.nth(2).click()
    ex.card("0:22 relu")
    assert ex.root.locator(".fe-node.fe-sel").count() == 1
    nb.page.screenshot(path=shots / "explorer_graph.png")
    ex.root.locator(".fe-path .fe-link").first.click()
    ex.root.locator(".fe-path", has_text="folded to").wait_for()
    ex.root.get_by_text("List", exact=True).click()
    ex.row("0:22").wait_for()
    assert not nb.errors


def test_a_graph_is_zoomed_moved_and_searched(notebook: Open, shots: Path) -> None:
    nb = notebook([*CELLS[:3], "%fluid graph"])
    for i in range(4):
        nb.run(i)
    ex = Explorer(nb, 3)
    canvas, drawing = ex.root.locator(".fe-canvas"), ex.root.locator(".fe-canvas svg")
    ex.root.locator(".fe-node").first.wait_for()
    assert "N×8" in str(canvas.text_content())
    ex.root.locator(".fe-node", has_text="h.w_0").first.click()
    ex.card("h.w_0")
    ex.root.locator(".fe-card", has_text="its value").wait_for()
    wide = drawing.evaluate("e => e.getBoundingClientRect().width")
    box = canvas.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    nb.page.mouse.move(x, y)
    for _ in range(3):
        nb.page.mouse.wheel(0, -100)
    wider = "([e, wide]) => e.getBoundingClientRect().width > 1.5 * wide"
    nb.page.wait_for_function(wider, arg=[drawing.element_handle(), wide])
    before = canvas.evaluate("e => [e.scrollLeft, e.scrollTop]")
    nb.page.mouse.down()
    nb.page.mouse.move(x - 60, y - 40, steps=5)
    nb.page.mouse.up()
    after = canvas.evaluate("e => [e.scrollLeft, e.scrollTop]")
    assert [b - a for a, b in zip(before, after, strict=True)] == [60, 40]
    ex.search("op:mul")
    ex.root.locator(".fe-node.fe-found").first.wait_for()
    assert ex.root.locator(".fe-node.fe-found").count() == 2
    nb.page.screenshot(path=shots / "explorer_graph_found.png")
    assert not nb.errors


def test_what_is_selected_in_one_is_selected_in_the_other(notebook: Open) -> None:
    nb = opened(notebook, "%fluid explore", "%fluid explore net")
    one, two, net = Explorer(nb, 5), Explorer(nb, 6), Explorer(nb, 7)
    one.root.scroll_into_view_if_needed()
    one.row("0:3").click()
    two.card("0:3 mul")
    net.card("0:3 mul")
    two.link("reads", "pred.w_0").click()
    one.card("written by")
    one.root.locator("select[aria-label=cell]").select_option(label="[4] loss")
    two.card("cell loss")
    assert two.root.locator(".fe-lit").count() > 5
    nb.page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex = 2")  # the cell net
    for name in ("0:0", "0:4"):
        one.root.locator(".fe-lit", has=nb.page.locator(f".fe-name:text-is('{name}')")).wait_for()
    assert not nb.errors


def test_cells_that_run_again_change_it(notebook: Open) -> None:
    nb = opened(notebook)
    ex = Explorer(nb, 5)
    ex.search("op:tanh")
    ex.count("0 found")
    ex.row("0:17").click()
    ex.card("0:17 sgd")
    nb.set(2, CELLS[2].replace("relu", "tanh") + "\npred = layers.relu(pred)")
    nb.run(2)
    ex.root.locator(".fe-title", has_text="29 ops").wait_for()
    ex.card("0:19 sgd")
    assert ex.root.locator(".fe-search").input_value() == "op:tanh"
    ex.count("2 found")
    nb.delete(4)
    nb.run(1)
    Explorer(nb, 4).root.locator(".fe-title", has_text="23 ops").wait_for()
    assert not nb.errors


def test_a_debug_session_moves_a_mark(notebook: Open) -> None:
    feed = "%fluid debug --feed x=np.ones((2,4),'float32') y=np.ones((2,1),'float32') --fetch loss"
    nb = opened(notebook, feed, "%fluid step", "%fluid until 1:0", "%fluid print h")
    ex = Explorer(nb, 5)
    now = ex.root.locator(".fe-now")
    now.filter(has_text="increment").wait_for()
    assert "1:0" in now.locator(".fe-name").inner_text()
    nb.run(7)
    now.filter(has_text="1:1").wait_for()
    ex.root.locator(".fe-position", has_text="paused at step").wait_for()
    ex.row("0:2").click()
    ex.link("writes", "h").click()
    ex.card("of the debug session")
    nb.set(9, "%fluid debug off")
    nb.run(9)
    ex.root.locator(".fe-position").wait_for(state="hidden")
    assert now.count() == 0
    assert not nb.errors


def test_five_thousand_operators(notebook: Open) -> None:
    long = "%%fluid long\nz = layers.relu(x)\nfor _ in range(4998):\n    z = layers.relu(z)\nz = layers.tanh(z)"
    nb = notebook([*CELLS[:2], long, "%fluid explore"])
    for i in range(4):
        nb.run(i)
    ex = Explorer(nb, 3)
    ex.root.locator(".fe-title", has_text="5,000 ops").wait_for()
    ex.root.locator(".fe-title:not(:has-text('reading'))").wait_for()
    tree = ex.root.locator("[role=tree]")
    tree.evaluate("e => { e.scrollTop = e.scrollHeight; }")
    ex.row("0:4999").wait_for()
    assert tree.locator(".fe-row").count() < 60, "only rows in view exist"
    tree.evaluate("e => { e.scrollTop = 0; }")
    ex.row("0:0").wait_for()
    ex.search("tanh")
    ex.count("1 found")
    nb.page.keyboard.press("Enter")
    ex.card("0:4999 tanh")
    assert not nb.errors


def test_a_kernel_that_is_gone(notebook: Open) -> None:
    nb = opened(notebook)
    ex = Explorer(nb, 5)
    nb.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    ex.root.locator(".fw-problem", has_text="The kernel is not running").wait_for()
    ex.search("op:mul")
    ex.count("4 found")
    nb.page.keyboard.press("Enter")
    ex.card("0:0 mul")
    ex.link("writes", "elementwise_add").click()
    ex.card("0:1 elementwise_add")
    ex.root.locator("select[aria-label=fold]").select_option("cells")
    assert "cell net  5 ops" in ex.root.locator(".fe-row").first.inner_text()
    assert not nb.errors
