"""Cells that are inserted, moved, deleted and restored in JupyterLab: the program follows the notebook as it is."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.browser.lab import WIDGET, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOAD = "%load_ext fluidnb"
DATA = "%%fluid\nx = layers.data('x', shape=[4])"
NET = "%%fluid\nh = layers.relu(x)"
OUT = "%%fluid\ng = layers.tanh(h)"
KNOWN = "from fluidnb_magics import extension\nprint(extension.load(get_ipython()).bench.notebook.reported)"
LOOK = "print([op.type for op in fluid.default_main_program().global_block().ops])"


def command(nb: Notebook, index: int, name: str) -> None:
    """Run a command of the notebook on a cell."""
    nb.page.evaluate(
        f"""async ([i, name]) => {{ {WIDGET}.content.activeCellIndex = i; {WIDGET}.content.deselectAll();
            await window.jupyterapp.commands.execute(name); }}""",
        [index, name],
    )


def undo_until(nb: Notebook, cells: int) -> None:
    """Press undo until the notebook has so many cells.

    JupyterLab counts what a cell's run changes as steps of its own when the run took longer than half a second.
    """
    nb.page.evaluate(
        f"""async n => {{ for (let i = 0; i < 10 && {WIDGET}.content.widgets.length !== n; i++)
            await window.jupyterapp.commands.execute('notebook:undo-cell-action'); }}""",
        cells,
    )
    nb.page.wait_for_function(f"n => {WIDGET}.content.widgets.length === n", arg=cells)


def ops(nb: Notebook, index: int) -> list[str]:
    found: list[str] = json.loads(nb.run(index).splitlines()[-1].replace("'", '"'))
    return found


def reported(nb: Notebook, index: int) -> None:
    """Wait until the page's script has loaded and the kernel knows the order of the cells."""
    while nb.run(index) != "True\n":
        nb.page.wait_for_timeout(100)


def test_the_program_follows_the_notebook(notebook: Callable[[list[str]], Notebook]) -> None:
    nb = notebook([LOAD, DATA, NET, OUT, LOOK, KNOWN])
    for i in range(4):
        nb.run(i)
    reported(nb, 5)
    assert ops(nb, 4) == ["relu", "tanh"]
    command(nb, 2, "notebook:insert-cell-below")
    nb.set(3, "%%fluid\nh = layers.sigmoid(h)")
    nb.run(3)
    assert ops(nb, 5) == ["relu", "sigmoid", "tanh"], "an inserted cell builds in its place"
    nb.set(3, "%%fluid\nx = layers.sigmoid(x)")
    nb.run(3)
    command(nb, 3, "notebook:move-cell-up")
    assert ops(nb, 5) == ["sigmoid", "relu", "tanh"], "a cell that was moved moves at the next run of any cell"
    nb.set(3, "%%fluid\nnew = layers.relu(x)")
    assert "stale: In[4], h is not defined" in nb.run(3)
    nb.set(4, "%%fluid\ng = layers.tanh(new)")
    nb.run(4)
    assert ops(nb, 5) == ["sigmoid", "relu", "tanh"]
    nb.page.wait_for_timeout(1000)  # JupyterLab undoes changes that are less than half a second apart as one
    nb.delete(2)
    assert ops(nb, 4) == ["relu", "tanh"]
    undo_until(nb, 7)
    nb.run(2)
    assert ops(nb, 5) == ["sigmoid", "relu", "tanh"], "a restored cell is back in its place"
    for i in (1, 2, 3, 4):
        assert "built again" not in nb.run(i)
    assert ops(nb, 5) == ["sigmoid", "relu", "tanh"]
    assert not nb.errors
