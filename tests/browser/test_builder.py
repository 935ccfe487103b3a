"""The builder in JupyterLab: LeNet from clicks and typed values; the notebook that it leaves runs by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.browser.lab import Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: Ten patterns of light and dark squares with noise: quick to tell apart, and nothing to fetch.
LOAD = """%load_ext fluidnb
import numpy as np
r = np.random.RandomState(3)
patterns = np.kron(r.rand(10, 1, 7, 7), np.ones((4, 4)))
Y = r.randint(0, 10, (32, 1))
X = (patterns[Y[:, 0]] + r.normal(0, 0.1, (32, 1, 28, 28))).astype("float32")"""
TRAIN = """exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
for step in range(8):
    print(float(exe.run(feed={"img": X, "label": Y}, fetch_list=[loss])[0][0]))"""
LENET = [
    ("data", {"name": "img", "shape": "[1, 28, 28]"}, None),
    ("data", {"name": "label", "shape": "[1]", "dtype": "int64"}, None),
    ("conv2d", {"input": "img", "num_filters": "6", "filter_size": "5", "act": "relu"}, None),
    ("pool2d", {"pool_size": "2", "pool_stride": "2"}, None),
    ("conv2d", {"num_filters": "16", "filter_size": "5", "act": "relu"}, None),
    ("pool2d", {"pool_size": "2", "pool_stride": "2"}, None),
    ("fc", {"size": "120", "act": "relu"}, None),
    ("fc", {"size": "84", "act": "relu"}, None),
    ("fc", {"size": "10", "act": "softmax"}, "predict"),
    ("cross_entropy", {}, "cost"),
    ("mean", {"x": "cost"}, "loss"),
    ("accuracy", {"input": "predict"}, "acc"),
    ("Momentum", {"learning_rate": "0.01", "momentum": "0.9"}, None),
]
WRITTEN = """%%fluid
img = layers.data("img", [1, 28, 28])
label = layers.data("label", [1], dtype="int64")
conv1 = layers.conv2d(img, num_filters=6, filter_size=5, act="relu")
pool1 = layers.pool2d(conv1, pool_size=2, pool_stride=2)
conv2 = layers.conv2d(pool1, num_filters=16, filter_size=5, act="relu")
pool2 = layers.pool2d(conv2, pool_size=2, pool_stride=2)
fc1 = layers.fc(pool2, 120, act="relu")
fc2 = layers.fc(fc1, 84, act="relu")
predict = layers.fc(fc2, 10, act="softmax")
cost = layers.cross_entropy(predict, label)
loss = layers.mean(cost)
acc = layers.accuracy(predict, label)
ops, grads = fluid.optimizer.Momentum(learning_rate=0.01, momentum=0.9).minimize(loss)"""


class Page:
    """The builder of a notebook, used as a user does.

    Args:
        nb: the notebook.
    """

    def __init__(self, nb: Notebook) -> None:
        self.nb = nb
        self.root = nb.page.locator(".fw-builder")
        self.root.wait_for()

    def choose(self, name: str) -> None:
        """Search for something and click it."""
        self.root.locator(".fb-search").fill(name)
        self.root.locator(f'.fb-row:first-child[data-name="{name}"]').click()
        self.root.locator(f'.fb-title[data-name="{name}"]').wait_for()
        self.answered()
        details = self.root.locator("details:not([open]) > summary")
        if details.count():
            details.click()

    def field(self, name: str) -> Any:
        """The first control of an argument."""
        return self.root.get_by_label(name, exact=True).first

    def fill(self, values: dict[str, str]) -> None:
        """Fill fields."""
        for name, text in values.items():
            control = self.field(name)
            if control.evaluate("e => e.tagName") == "SELECT":
                control.select_option(text)
            else:
                control.fill(text)
            self.answered()

    def call(self, result: str) -> None:
        """Give the result a name."""
        self.root.get_by_label("name of the result").fill(result)
        self.answered()

    def insert(self) -> None:
        """Click Insert, and wait until the cell ran and a new draft begins."""
        line = self.preview().splitlines()[0]
        self.root.locator(".fb-insert").click()
        self.nb.page.wait_for_function(
            "([e, line]) => !e.querySelector('.fb-preview').textContent.startsWith(line + '\\n')",
            arg=[self.root.element_handle(), line],
        )
        self.answered()

    def preview(self) -> str:
        """The text of the preview."""
        text: str = self.root.locator(".fb-preview").inner_text()
        return text

    def answered(self) -> None:
        """Wait for the kernel's answer to the last change."""
        self.root.locator('.fb-draft[aria-busy="false"]').wait_for()


def sources(nb: Notebook) -> list[str]:
    """The text of each cell."""
    found: list[str] = nb.page.evaluate(
        "window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells.map(cell => cell.getSource())"
    )
    return found


def test_lenet_from_clicks(
    notebook: Callable[[list[str]], Notebook], running_lab: Lab, shots: Path, tmp_path: Path
) -> None:
    nb = notebook([LOAD, "%fluid build", TRAIN])
    nb.run(0)
    nb.run(1)
    page = Page(nb)
    for name, values, result in LENET:
        page.choose(name)
        page.fill(values)
        if result:
            page.call(result)
        if name == "Momentum":
            assert "backward" in page.preview() and "optimizer" in page.preview()
            nb.page.screenshot(path=shots / "builder_lenet.png")
        page.insert()
    assert sources(nb) == [LOAD, "%fluid build", WRITTEN, TRAIN]
    assert not nb.errors
    nb.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    nb.page.wait_for_function("!window.jupyterapp.shell.currentWidget.context.model.dirty")
    saved = nbformat.read(running_lab.root / "test_builder__test_lenet_from_clicks.ipynb", as_version=4)
    ran = NotebookClient(saved, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    losses = [float(text) for text in text_of(ran.cells[3]).split()]
    assert len(losses) == 8 and losses[-1] < losses[0], losses


def test_with_the_keyboard_alone(notebook: Callable[[list[str]], Notebook], shots: Path) -> None:
    nb = notebook(
        [LOAD, '%%fluid\nx = layers.data("x", [4])\nids = layers.data("ids", [1], dtype="int64")', "%fluid build fc"]
    )
    for index in range(3):
        nb.run(index)
    page, press = Page(nb), nb.page.keyboard.press
    page.root.focus()
    for key in "dda":  # what would delete a cell and add one, were it Lab's
        press(key)
    press("/")
    nb.page.keyboard.type("fully conn")
    page.root.locator(".fb-row").nth(1).wait_for(state="detached")
    press("Enter")
    page.root.locator("label:text-is('size') + .fb-field input:focus").wait_for()
    nb.page.keyboard.type("ten")
    wrong = page.root.locator(".fb-field.fb-bad .fb-wrong")
    wrong.wait_for()
    page.answered()
    assert "Cannot get attribute size of fc by type int" in wrong.inner_text()
    assert "hint:     size: number of output features" in wrong.inner_text()
    assert page.root.locator(".fb-insert").is_disabled()
    nb.use_theme(dark=True)
    nb.page.locator("#jupyterlab-splash").wait_for(state="detached")
    nb.page.screenshot(path=shots / "builder_dark.png")
    nb.use_theme(dark=False)
    nb.page.locator("#jupyterlab-splash").wait_for(state="detached")
    page.field("size").focus()  # changing the theme takes the cursor away
    for _ in range(3):
        press("Backspace")
    nb.page.keyboard.type("0")
    page.answered()
    assert wrong.inner_text() == "fc needs at least one output feature."
    assert "expected: size > 0" in page.preview()
    press("Backspace")
    nb.page.keyboard.type("10")
    page.answered()
    assert page.preview().splitlines() == [
        "fc1 = layers.fc(x, 10)", "fc1  float32[-1, 10]", "2 parameters: fc1.w_0 [4, 10], fc1.b_0 [10]",
        "2 ops: mul, elementwise_add",
    ]  # fmt: skip
    press("Enter")
    nb.page.wait_for_function("window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells.length === 4")
    nb.page.wait_for_function(
        "window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells[3].execution_count === 4"
    )
    nb.page.locator(".fw-builder:focus").wait_for()
    assert sources(nb)[3] == "%%fluid\nfc1 = layers.fc(x, 10)"
    assert "2 ops, 2 parameters" in nb.text(3)
    assert not nb.errors


def test_inside_a_block_that_is_open(notebook: Callable[[list[str]], Notebook]) -> None:
    begin = (
        '%%fluid\ni = layers.fill_constant([1], "int64", 0)\nn = layers.fill_constant([1], "int64", 3)\n'
        "turns = layers.While(layers.less_than(i, n))"
    )
    nb = notebook(["%load_ext fluidnb", begin, "%fluid block open turns", "%fluid build increment"])
    for index in range(4):
        nb.run(index)
    page = Page(nb)
    about, text = page.root.locator(".fb-all"), page.root.locator(".fb-page")
    for _ in range(2):
        about.click()
        text.get_by_text("value: what is added").wait_for()
        assert "kernels" in text.inner_text()
        about.click()
        text.wait_for(state="hidden")
    page.root.get_by_label("block", exact=True).select_option("turns")
    page.answered()
    page.fill({"x": "i"})
    page.insert()
    assert sources(nb)[4].splitlines()[0] == "%%fluid --in turns"
    assert sources(nb)[4].splitlines()[1].startswith("increment1 = layers.increment(i")
    assert "1 op in block 1 of turns" in nb.text(4)
    assert not nb.errors


def test_a_kernel_that_is_gone(notebook: Callable[[list[str]], Notebook], shots: Path) -> None:
    nb = notebook([LOAD, '%%fluid\nx = layers.data("x", [4])', "%fluid build fc"])
    for index in range(3):
        nb.run(index)
    page = Page(nb)
    page.fill({"size": "7"})
    nb.page.evaluate(
        "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
    )
    nb.page.locator(".fw-builder.fw-dead").wait_for()
    assert "fc1 = layers.fc(x, 7)" in page.preview()
    assert page.root.locator(".fb-insert").is_disabled() and page.field("size").is_disabled()
    page.root.locator('.fb-row[data-name="relu"]').click()
    assert "fc1 = layers.fc(x, 7)" in page.preview() and not nb.errors
    nb.page.screenshot(path=shots / "builder_dead.png")
    assert "fluid build shows it" in nb.text(2)


def text_of(cell: Any) -> str:
    """The text of a cell's outputs."""
    texts = [o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return "\n".join(texts)
