"""A debugger panel on a page, and the notebook that it is in."""

from __future__ import annotations

import re
from typing import Any

from tests.browser.lab import Notebook

#: A program with a loop, a loss and an optimizer; X and Y feed it.
PROGRAM = [
    "%load_ext fluidnb\nimport numpy as np\nX = np.random.RandomState(0).rand(16, 4).astype('float32')\n"
    "Y = X.sum(1, keepdims=True)",
    "%%fluid net\nx = layers.data('x', shape=[4])\ny = layers.data('y', shape=[1])\n"
    "h = layers.fc(x, size=10, act='relu')\npred = layers.fc(h, size=1)",
    "%%fluid count\ni = layers.fill_constant([1], 'int64', 0)\nn = layers.fill_constant([1], 'int64', 3)\n"
    "total = layers.fill_constant([1], 'float32', 0.0)\nmore = layers.less_than(i, n)\nloop = layers.While(more)\n"
    "with loop.block():\n    layers.increment(i)\n    part = layers.reduce_sum(h)\n"
    "    layers.assign(layers.elementwise_add(total, part), total)\n    layers.less_than(i, n, cond=more)",
    "%%fluid loss\nloss = layers.mean(layers.square_error_cost(pred, y))\n"
    "ops, grads = fluid.optimizer.SGD(0.01).minimize(loss)",
]
_KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"


class PanelPage:
    """The panel in a cell's outputs.

    Args:
        nb: the notebook.
        number: which of the panels in it, from above.

    Attributes:
        root: the panel's element.
    """

    def __init__(self, nb: Notebook, number: int = 0) -> None:
        self.nb, self.page = nb, nb.page
        self.root = nb.page.locator(".fw-panel").nth(number)
        self.root.locator(".fp-state", has_text=re.compile("idle|paused|failed|done")).wait_for()

    def press(self, word: str) -> None:
        """Press a button."""
        self.root.locator(f".fp-{word}.fp-move").click()

    def at(self, step: int, state: str = "paused", reason: str = "") -> None:
        """Wait until the session stands somewhere; fails after a minute."""
        self.root.locator(".fp-count", has_text=re.compile(rf"^step {step:,}$")).wait_for()
        self.root.locator(".fp-state", has_text=re.compile(f"^{state}$")).wait_for()
        if reason:
            self.root.locator(".fp-reason", has_text=reason).wait_for()

    @property
    def step(self) -> int:
        """The step at which the panel stands."""
        return int(re.sub(r"\D", "", self.root.locator(".fp-count").inner_text()))

    def past(self, step: int) -> None:
        """Wait until a run has gone past a step."""
        self.nb.page.wait_for_function(
            "n => Number(document.querySelector('.fp-count').textContent.replace(/\\D/g, '')) > n", arg=step
        )

    def op(self, text: str) -> Any:
        """The row of the first operator with a text."""
        return self.root.locator(".fp-op", has_text=text).first

    def here(self, text: str) -> None:
        """Wait until the operator that comes next has a text."""
        self.root.locator(".fp-op.fp-here", has_text=text).wait_for()

    def value(self, name: str) -> Any:
        """The row of a variable of the scope that is shown."""
        exact = self.page.locator(".fp-name", has_text=re.compile(f"^{re.escape(name)}$"))
        return self.root.locator(".fp-values .fp-value", has=exact)

    def cell_of(self, row: int, column: int, text: str) -> None:
        """Wait until an element of the open tensor reads so."""
        rows = self.root.locator(".fp-cells tr")
        rows.nth(row + 1).locator(
            f"td:nth-of-type({column + 1})", has_text=re.compile(f"^{re.escape(text)}$")
        ).wait_for()

    def fill(self, label: str, text: str) -> None:
        """Type into a box and press Enter."""
        box = self.root.get_by_label(label, exact=True).locator("visible=true").first
        box.fill(text)
        box.press("Enter")

    def lit(self, *lines: str) -> None:
        """Wait until these lines of the cells' editors are marked, and no others."""
        self.page.wait_for_function(
            """lines => JSON.stringify([...document.querySelectorAll('.jp-Cell .cm-line')]
                .filter(line => getComputedStyle(line).boxShadow.includes('inset'))
                .map(line => line.textContent)) === JSON.stringify(lines)""",
            arg=list(lines),
        )

    def compares(self, name: str) -> None:
        """Open a tensor of shape [16, 4], change an element, and compare the tensor with its value one step earlier."""
        before, row, column = self.step, 1, 2
        self.value(name).click()
        opened = self.root.locator(".fp-opened")
        opened.locator(".fp-cells").wait_for()
        old = opened.locator(".fp-cells tr").nth(row + 1).locator("td").nth(column).inner_text()
        self.fill("new value", f"np.where(np.arange(64).reshape(16, 4) == 6, 9, {name})")
        self.at(before + 1)
        self.fill("compare with step", str(before))
        opened.get_by_role("status").filter(has_text=f"1 of 64 elements differs from step {before}").wait_for()
        largest = opened.locator(".fp-largest tr")
        assert largest.count() == 2
        assert largest.nth(1).locator("th, td").all_inner_texts()[:3] == [f"[{row}, {column}]", old, "9"]
        assert opened.locator(".fp-cells .fp-changed").count() == 1
        opened.get_by_label("numbers in the table").select_option("old")
        self.cell_of(row, column, old)
        self.fill("compare with step", "999")
        opened.get_by_role("status").filter(has_text="The session has not been at that step.").wait_for()
        self.fill("compare with step", "")
        opened.get_by_role("status").wait_for(state="detached")
        self.cell_of(row, column, "9")

    def begin(self, index: int) -> None:
        """Begin to run a cell, and do not wait for its end."""
        self.page.evaluate(
            """i => { const nb = window.jupyterapp.shell.currentWidget; nb.content.activeCellIndex = i;
                void window.jupyterapp.commands.execute('notebook:run-cell'); }""",
            index,
        )

    def says(self, index: int, text: str) -> None:
        """Wait until a cell's outputs have a text."""
        self.page.wait_for_function(
            """([i, t]) => { const nb = window.jupyterapp.shell.currentWidget.content;
                return JSON.stringify(nb.widgets[i].model.toJSON().outputs).includes(t); }""",
            arg=[index, text],
        )

    def interrupt(self) -> None:
        """Interrupt the kernel."""
        self.page.evaluate(f"async () => await {_KERNEL}.interrupt()")

    def restart(self) -> None:
        """Restart the kernel."""
        self.page.evaluate(f"async () => await {_KERNEL}.restart()")
