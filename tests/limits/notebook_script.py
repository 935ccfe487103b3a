"""Cells, commands and widgets of a notebook, for `test_without_threads.py`."""

from __future__ import annotations

from typing import Any

from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell

from fluidnb.debug.session import current
from fluidnb_magics.extension import load
from fluidnb_magics.widgets.explorer import Explorer
from fluidnb_magics.widgets.ipywidgets_panel import PlainPanel
from fluidnb_magics.widgets.memory_explorer import MemoryExplorer
from fluidnb_magics.widgets.panel import Panel

CELLS = """%load_ext fluidnb
import numpy as np; batches = [{'x': np.ones((2, 4), 'float32')}] * 20
%fluid show
%fluid train batches --watch loss
%fluid memory
%fluid profile --feed x=batches[0]['x']
%fluid debug --feed x=batches[0]['x']
%fluid step
%fluid continue
%fluid break op relu
%fluid rcontinue
%fluid panel
%fluid explore
%fluid teach backward"""
NET = """%%fluid net
x = layers.data("x", shape=[4])
h = layers.fc(x, 3, act="relu")
loss = layers.mean(h)
fluid.optimizer.SGD(0.1).minimize(loss)"""


def main() -> None:
    """Run the cells, then use widgets as their pages do."""
    HistoryManager.enabled = False  # it has a separate thread
    shell = InteractiveShell.instance()
    cells = CELLS.splitlines()
    for cell in [*cells[:2], NET, *cells[2:]]:
        result = shell.run_cell(cell, store_history=True)
        assert result.success, (cell, result.error_in_exec or result.error_before_exec)
    session, bench = current(), load(shell).bench
    assert session is not None and session.inline
    panel = Panel(session, bench.changes)
    panel.do_shown()
    for word in ("restart", "step", "next", "back"):
        panel.controls.do_move(word)
    assert panel.position["at"] == 1
    panel.controls.do_watch("loss")
    panel.do_open("x")
    assert panel.opened["line"]["name"] == "x"
    explorer, sent = Explorer(bench), list[Any]()
    explorer.send = sent.append  # type: ignore[method-assign,assignment]
    explorer.do_shown()
    explorer.do_graph("")
    assert sent, "the graph is drawn at once"
    plain = PlainPanel(session)
    plain.line.value = "step"
    assert session.snapshot.at == 2 and "mul" in plain.where.value
    MemoryExplorer(bench, session.program).update()
    session.close()
