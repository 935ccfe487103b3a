"""Live pictures in JupyterLab: scopes, memory and time while a training cell runs, and linked with each other."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab import Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SETUP = [
    "%load_ext fluidnb\nimport numpy as np, time\nfrom pathlib import Path",
    "%%fluid net\n"
    "x, y = layers.data('x', shape=[1, 28, 28]), layers.data('y', shape=[1], dtype='int64')\n"
    "c = fluid.nets.simple_img_conv_pool(x, num_filters=6, filter_size=5, pool_size=2, pool_stride=2, act='relu')\n"
    "pred = layers.fc(c, 10, act='softmax')\n"
    "loss = layers.mean(layers.cross_entropy(pred, y))\n"
    "fluid.optimizer.SGD(0.05).minimize(loss);",
    "rng = np.random.RandomState(0)\n"
    "X, Y = rng.rand(16, 1, 28, 28).astype('float32'), rng.randint(0, 10, (16, 1))\n"
    "fluid.seed(5)\n"  # of 60 seeds, three leave the weights that the scope shows unchanged after 600 steps
    "%fluid run --feed x=X y=Y --fetch loss",
]
#: A canvas has been drawn: not all of its pixels are the same.
DRAWN = """canvas => { const { width, height } = canvas;
    const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    return new Set(new Uint32Array(pixels.buffer)).size > 20; }"""
RUNS = "text => Number((text.match(/after ([\\d,]+) run/) || [0, '0'])[1].replaceAll(',', ''))"


class Live(Notebook):
    """A notebook with a cell that trains until the test has seen enough.

    Args:
        nb: the notebook.
        root: its folder.
    """

    def __init__(self, nb: Notebook, root: Path) -> None:
        self.__dict__.update(nb.__dict__)
        self._stop = root / f"stop-{uuid.uuid4().hex}"
        self.training = (
            "def going():\n"
            f"    while not Path('{self._stop.name}').exists():\n"
            "        yield {'x': X, 'y': Y}\n"
            "exe = fluid.Executor()\n"
            "for batch in going():\n"
            "    exe.run(feed=batch, fetch_list=[loss])\n"
            "    time.sleep(0.002)\n"
            "print('trained')"
        )

    def start(self, index: int) -> None:
        """Run the cell that trains, and do not wait for it."""
        self.set(index, self.training)
        self.page.evaluate(
            "i => { const nb = window.jupyterapp.shell.currentWidget; nb.content.activeCellIndex = i;"
            " window.jupyterapp.commands.execute('notebook:run-cell'); }",
            index,
        )

    def stop(self) -> None:
        """Let it end."""
        self._stop.touch()

    @property
    def prompt(self) -> str:
        """The prompt of the last cell: ``[*]:`` while it runs."""
        return str(self.page.locator(".jp-Notebook .jp-Cell .jp-InputPrompt").last.text_content())

    def until(self, locator: Any, test: str, arg: Any = None) -> Any:
        """Wait for a condition on an element.

        Args:
            locator: the element.
            test: a function of the element and ``arg``.
            arg: see there.

        Returns:
            What the function gives, when that is true.
        """
        handle = locator.element_handle()
        found = self.page.wait_for_function(f"([e, arg]) => ({test})(e, arg)", arg=[handle, arg], timeout=60_000)
        return found.json_value()


@pytest.fixture
def live(notebook: Callable[[list[str]], Notebook], running_lab: Lab) -> Iterator[Callable[..., Live]]:
    """Opens a notebook with a model that has run once, the given cells, and one to train in."""
    opened: list[Live] = []

    def open_cells(*cells: str) -> Live:
        nb = Live(notebook([*SETUP, *cells, "# trains"]), running_lab.root)
        opened.append(nb)
        for i in range(len(SETUP) + len(cells)):
            nb.run(i)
        return nb

    yield open_cells
    for nb in opened:
        nb.stop()


def test_scopes_follow_a_cell_that_is_busy(live: Callable[..., Live], shots: Path) -> None:
    nb = live("%fluid scope --live")
    widget = nb.cell(3).locator(".fw-scope")
    state, row = widget.locator(".fs-state"), widget.locator('[data-key="|pred.w_0"]')
    row.wait_for()
    assert "float32[864, 10]" in row.text_content()
    row.click()
    numbers, cell = widget.locator(".fs-numbers"), widget.locator(".fs-cells td.fs-above").first
    cell.wait_for()
    before = numbers.text_content()
    nb.start(4)
    runs = nb.until(state, f"e => ({RUNS})(e.textContent)")
    nb.until(state, f"(e, n) => ({RUNS})(e.textContent) > n", runs)
    nb.until(numbers, "(e, text) => e.textContent !== text", before)
    widget.locator(".fs-var.fs-new").first.wait_for()
    widget.locator(".fs-cells td.fs-new").first.wait_for()
    nb.until(widget.locator(".fs-way svg"), "e => e.querySelectorAll('.fc-curve, .fc-band').length === 2")
    assert nb.prompt == "[*]:", "all this was seen while the cell was busy"
    widget.locator(".fs-search").fill("B_0")  # the page searches by itself
    nb.until(widget.locator(".fs-tree"), "e => e.querySelectorAll('.fs-var').length === 2")
    widget.locator(".fs-search").press("Escape")
    nb.until(widget.locator(".fs-tree"), "e => e.querySelectorAll('.fs-var').length === 5")
    for dark in (False, True):
        nb.use_theme(dark)
        widget.screenshot(path=shots / f"scope_busy_{'dark' if dark else 'light'}.png")
    nb.stop()
    nb.page.wait_for_function("() => document.querySelector('.jp-Notebook').textContent.includes('trained\\n')")
    assert "trained" in nb.text(4)
    assert not nb.errors


def test_a_large_tensor_page_by_page(live: Callable[..., Live], shots: Path) -> None:
    nb = live(
        "big = (np.arange(4000)[:, None] + np.arange(500) / 1000).astype('float32')\n"
        "fluid.global_scope().var('big').get_tensor().set(big, fluid.CPUPlace())\n"
        "images = rng.rand(6, 3, 24, 32).astype('float32')\n"
        "fluid.global_scope().var('images').get_tensor().set(images, fluid.CPUPlace())\n"
        "%fluid scope --live big"
    )
    widget = nb.cell(3).locator(".fw-scope")
    grid = widget.locator(".fs-grid")
    cell = widget.locator('.fs-cells tr:has(> th:text-is("3999")) td').last
    widget.locator(".fs-cells td").nth(2).wait_for()
    grid.evaluate("e => { e.scrollTop = e.scrollHeight; e.scrollLeft = e.scrollWidth; }")
    nb.until(grid, "e => e.querySelector('tr:last-child td:last-child')?.textContent === '3999.5'")
    assert cell.text_content() == "3999.5"
    assert grid.locator("td").count() < 1000, "only what is in view is in the page"
    widget.locator(".fs-picture").first.click(position={"x": 5, "y": 2})
    nb.until(grid, "e => Number(e.querySelector('tr:nth-child(2) th').textContent) < 400")
    widget.locator('[data-key="|images"]').click()
    widget.locator(".fs-picture").nth(1).wait_for()
    nb.until(widget.locator(".fs-axes"), "e => e.textContent.includes('axis 0 at')")
    slide = widget.locator('.fs-axes input[type="range"]').first
    first = grid.locator("td").nth(1).text_content()
    slide.focus()
    slide.press("End")
    nb.until(grid, "(e, text) => e.querySelectorAll('td')[1].textContent !== text", first)
    widget.locator(".fs-axes select").first.select_option("0")
    nb.until(grid, "e => e.querySelectorAll('tr').length === 7")
    nb.page.set_viewport_size({"width": 640, "height": 1400})
    nb.scroll_to(3)
    nb.page.screenshot(path=shots / "scope_narrow.png")
    assert not nb.errors


def test_scopes_with_the_keyboard(live: Callable[..., Live]) -> None:
    nb = live("%fluid run --keep --feed x=X y=Y\n%fluid scope --live")
    widget = nb.cell(3).locator(".fw-scope")
    tree = widget.locator(".fs-tree")
    widget.locator(".fs-var").first.wait_for()
    count = nb.page.locator(".jp-Notebook .jp-Cell").count()
    tree.focus()
    for key in ("a", "b", "x", "ArrowDown", "ArrowUp"):  # commands of the notebook, were they not kept here
        nb.page.keyboard.press(key)
    assert nb.page.locator(".jp-Notebook .jp-Cell").count() == count
    nb.page.keyboard.press("ArrowLeft")
    nb.until(tree, "e => e.querySelector('.fs-active').getAttribute('aria-expanded') === 'false'")
    nb.page.keyboard.press("ArrowRight")
    nb.page.keyboard.press("ArrowDown")
    nb.page.keyboard.press("Enter")
    widget.locator(".fs-detail:not([hidden])").wait_for()
    assert tree.locator('[aria-selected="true"]').get_attribute("data-key") == "|c.b_0"
    nb.page.keyboard.press("End")
    nb.until(tree, "e => e.scrollTop > 0 && e.querySelector('.fs-active')")
    nb.page.keyboard.press("Escape")
    nb.until(widget.locator(".fs-detail"), "e => e.hidden")
    nb.page.keyboard.press("/")
    nb.page.keyboard.type("tmp_0")
    nb.until(tree, "e => e.textContent.includes('block 0') && !e.textContent.includes('c.b_0')")
    assert not nb.errors


def test_what_is_selected_is_selected_in_all(live: Callable[..., Live], shots: Path) -> None:
    nb = live(
        "%fluid scope --live", "%fluid memory --live", "%fluid profile --live --feed x=X y=Y --fetch loss --steps 4"
    )
    scopes, memory, time = (
        nb.cell(i + 3).locator(f".fw-{name}") for i, name in enumerate(("scope", "memory", "timeline"))
    )
    for widget in (memory, time):
        widget.locator(".fc-table-row").first.wait_for()
        widget.scroll_into_view_if_needed()
        nb.until(widget.locator("canvas"), DRAWN)
    scopes.locator('[data-key="|pred.w_0"]').click()
    nb.until(memory, "e => [...e.querySelectorAll('.fc-picked')].some(row => row.textContent.includes('pred.w_0'))")
    nb.until(time, "e => [...e.querySelectorAll('.fc-picked')].some(row => row.textContent.includes('mul'))")
    memory.locator(".fc-table-row", has_text="c.w_0").first.click()
    scopes.locator('.fs-picked[data-key="|c.w_0"]').wait_for()
    time.locator(".fc-table-row", has_text="sgd").click()
    scopes.locator('.fs-picked[data-key="|learning_rate_0"]').wait_for()
    nb.until(time, "e => e.querySelectorAll('.fc-picked').length === 1")
    for dark in (False, True):
        nb.use_theme(dark)
        for name, widget in (("memory", memory), ("timeline", time)):
            widget.scroll_into_view_if_needed()
            nb.until(widget.locator("canvas"), DRAWN)
            widget.screenshot(path=shots / f"{name}_{'dark' if dark else 'light'}.png")
    assert not nb.errors


def test_memory_follows_a_cell_that_is_busy(live: Callable[..., Live]) -> None:
    nb = live("%fluid memory --live")
    widget = nb.cell(3).locator(".fw-memory")
    widget.locator(".fc-table-row").first.wait_for()
    nb.start(4)
    pool = widget.locator(".fm-pool")
    last = "e => Number([...e.querySelectorAll('svg text')].pop()?.textContent.replaceAll(',', '') || 0)"
    runs = nb.until(pool, f"e => ({last})(e) > 20 && ({last})(e)")
    nb.until(pool, f"(e, n) => ({last})(e) > n", runs)
    assert nb.prompt == "[*]:"
    nb.stop()
    heads = widget.locator(".fc-table-head").first
    heads.locator("button", has_text="variable").click()
    nb.until(widget, "e => e.querySelector('.fc-table-row').textContent.startsWith('c')")
    assert heads.locator('[aria-sort="ascending"]').count() == 1
    assert not nb.errors


def test_a_profile_follows_a_cell_that_is_busy(live: Callable[..., Live], shots: Path) -> None:
    nb = live("%fluid profile --live")
    widget = nb.cell(3).locator(".fw-timeline")
    nb.until(widget, "e => e.textContent.includes('no run yet')")
    nb.start(4)
    first = nb.until(widget, "e => /run [0-9,]+ since/.exec(e.textContent)?.[0]")
    nb.until(widget, "(e, first) => /run [0-9,]+ since/.exec(e.textContent)[0] !== first", first)
    assert nb.prompt == "[*]:" and widget.locator(".fc-table-row").count() > 2
    widget.screenshot(path=shots / "profile_live.png")
    assert not nb.errors


def test_a_notebook_that_is_opened_again_shows_pictures_without_an_error(
    live: Callable[..., Live], shots: Path
) -> None:
    nb = live("%fluid explore", "%fluid profile --live --feed x=X y=Y")
    nb.cell(4).locator(".fc-table-row").first.wait_for()
    page = nb.page
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.reload()
    page.wait_for_function("() => document.querySelectorAll('[data-fluidnb-static]').length === 2", timeout=60_000)
    page.wait_for_timeout(3000)
    nb.scroll_to(3)
    shown = page.evaluate(
        "() => [...document.querySelectorAll('.jp-OutputArea-output')]"
        ".filter(e => e.offsetHeight).map(e => e.innerText)"
    )
    page.screenshot(path=shots / "opened_again.png")
    assert not [text for text in shown if "rror" in text or "Loading widget" in text], shown
    assert page.locator("[data-fluidnb-static] svg").first.is_visible()


def test_zooming_with_the_keyboard_and_the_wheel(live: Callable[..., Live], shots: Path) -> None:
    nb = live("%fluid profile --live --feed x=X y=Y --fetch loss --steps 4")
    widget = nb.cell(3).locator(".fw-timeline")
    canvas, total = widget.locator("canvas"), widget.locator(".ft-total")
    widget.locator(".fc-table-row").first.wait_for()
    whole = total.text_content()
    assert "visible" not in whole
    canvas.focus()
    for _ in range(5):
        nb.page.keyboard.press("+")
    nb.page.keyboard.press("ArrowLeft")
    nb.until(total, "e => e.textContent.startsWith('visible')")
    near = total.text_content()
    box = canvas.bounding_box()
    nb.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 15)
    nb.page.mouse.wheel(0, -400)
    nb.until(total, "(e, text) => e.textContent !== text", near)
    nb.page.keyboard.press("0")
    nb.until(total, "(e, text) => e.textContent === text", whole)
    for group in ("type", "role", "cell", "block"):
        widget.locator("select").select_option(group)
        nb.until(
            widget, "(e, text) => e.querySelector('.ft-total').textContent.startsWith(text)", whole.split(" in ")[0]
        )
    widget.locator("select").select_option("type")
    widget.screenshot(path=shots / "timeline_type.png")
    nb.page.mouse.move(2, 2)  # what the mouse points at is where the keys would go on from
    nb.until(widget.locator(".fc-tip"), "e => e.hidden")
    canvas.focus()
    nb.page.keyboard.press(".")
    nb.until(widget.locator(".fc-status"), "e => e.textContent.includes('op 0 (conv2d) in block 0')")
    nb.page.keyboard.press("Enter")
    nb.until(widget, "e => e.querySelectorAll('.fc-picked').length > 0")
    assert not nb.errors


def test_five_thousand_variables(live: Callable[..., Live], shots: Path) -> None:
    nb = live(
        "from fluidnb.values.tensor import LoDTensor\nmany = fluid.global_scope()\nfor i in range(5000):\n"
        "    many.var(f'layer_{i // 10}.w_{i:04}').value = LoDTensor(rng.rand(8, 8).astype('float32'))",
        "%fluid scope --live",
    )
    widget = nb.cell(4).locator(".fw-scope")
    tree = widget.locator(".fs-tree")
    widget.locator(".fs-statistics:not(:empty)").first.wait_for()
    assert "5,005 variables" in widget.locator(".fs-count").text_content()
    assert tree.locator(".fs-row").count() < 100
    tree.evaluate("e => { e.scrollTop = e.scrollHeight / 2; }")
    nb.until(tree, "e => [...e.querySelectorAll('.fs-var')].every(r => r.textContent.includes('layer_')) && "
                   "[...e.querySelectorAll('.fs-statistics')].filter(s => s.textContent).length > 12")  # fmt: skip
    widget.locator(".fs-search").fill("LAYER_49 w_4991")
    tree.locator('[data-key="|layer_499.w_4991"] .fs-statistics:not(:empty)').wait_for()
    assert tree.locator(".fs-var").count() == 1
    assert not nb.errors


def test_without_a_kernel_they_are_readable_and_dead(live: Callable[..., Live], shots: Path) -> None:
    cells = ("%fluid scope --live pred.w_0", "%fluid memory --live", "%fluid profile --live --feed x=X y=Y")
    nb = live(*cells)
    names = ("scope", "memory", "timeline")
    nb.cell(3).locator(".fs-cells td").nth(3).wait_for()
    nb.cell(4).locator(".fc-table-row").first.wait_for()
    nb.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    for i, name in enumerate(names):
        widget = nb.cell(i + 3).locator(f".fw-{name}")
        nb.until(widget, "e => e.classList.contains('fw-dead')")
        assert "The kernel is not running" in widget.text_content()
    assert "pred.w_0" in nb.cell(3).text_content() and nb.cell(4).locator(".fc-table-row").count() > 3
    for i, name in enumerate(names):
        (data,) = [out["data"] for out in nb.outputs(i + 3) if "text/html" in out["data"]]
        text, html = "".join(data["text/plain"]), "".join(data["text/html"])
        assert {"scope": "pred.w_0", "memory": "live at the peak", "timeline": "timeline"}[name] in text
        assert "<table" in html if name == "scope" else "<svg" in html
    assert not nb.errors
