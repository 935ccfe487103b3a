"""The program explorer without a page: what it sends, what it does when asked, and that it ends with the widget."""

from __future__ import annotations

import gc
import json
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.debug.flow import forward_of
from fluidnb.errors import NotFound
from fluidnb.op import EMPTY
from fluidnb.viz import ProgramPicture, level, read_program, select
from fluidnb.viz.program.graphviz import dot_svg
from fluidnb.viz.program.table import read_table
from fluidnb_magics.session.change_notifier import ChangeNotifier
from fluidnb_magics.session.selection import Chosen
from fluidnb_magics.widgets.explorer import Explorer, drawn
from tests.magics.conftest import Session
from tests.magics.test_cells import LOOP, model


class Page:
    """The messages that a page gets from an explorer.

    Args:
        explorer: the explorer.

    Attributes:
        heard: the messages.
    """

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.heard: list[dict[str, Any]] = []
        explorer.send = lambda content, buffers=None: self.heard.append(content)

    def ask(self, do: str, **more: Any) -> None:
        """Send a command."""
        self.explorer._on_message(self.explorer, {"do": do, **more}, [])

    def wait(self, what: str) -> Any:
        """The next message of a kind, whenever it comes."""
        return until(lambda: next((m[what] for m in self.heard if what in m), None))


def until(look: Callable[[], Any]) -> Any:
    """The first result of a function that is not empty."""
    end = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def table_of(explorer: Explorer) -> dict[str, Any]:
    """The table that a page gets."""
    table: dict[str, Any] = json.loads(explorer.table)
    return table


@pytest.fixture
def page(session: Session) -> Page:
    """An explorer of a small program."""
    model(session)
    return Page(Explorer(session.bench))


def test_the_table_holds_the_program(session: Session, page: Page) -> None:
    table = table_of(page.explorer)
    desc = fluid.default_main_program().desc
    types = [table["words"][row[3]] for row in table["rows"]]
    assert types == [op.optype for op in desc.blocks[0].ops]
    for row, op in zip(table["rows"], desc.blocks[0].ops, strict=True):
        names = [table["vars"][v][0] for slot in (*row[5], *row[6]) for v in slot[1:]]
        used = (*op.input_arg_names(), *op.output_arg_names())
        assert sorted(names) == sorted(name for name in used if name != EMPTY)
        forward = forward_of(op, desc.blocks[0].ops)
        assert (None if row[10] < 0 else desc.blocks[0].ops[row[10]]) is forward
    assert {"h.w_0", "parameter"} <= {word for var in table["vars"] for word in var if isinstance(word, str)}


def test_runs_are_those_of_the_picture(session: Session) -> None:
    model(session)
    session.run(LOOP)
    picture = read_program(fluid.default_main_program())
    table = read_table(picture)
    for kind in ("cells", "layers"):
        folds = [op for op in select(picture, fold=kind).root.ops if op.hides]
        firsts = {table.rows[first][1] for first, _, _ in table.runs[kind] if table.rows[first][0] == 0}
        assert firsts == {op.index for op in folds}
    assert read_table(select(picture, fold=["cells", "blocks"])).rows == table.rows, "what is folded is opened"
    assert read_table(read_program(fluid.default_main_program(), limit=5)).left == picture.size - 5


def test_blocks_and_cells(session: Session) -> None:
    session.run(LOOP)
    explorer = Explorer(session.bench)
    table = table_of(explorer)
    inner = [row for row in table["rows"] if row[0] == 1]
    assert [row[2] for row in inner] == [1, 1], "one deeper"
    [loop] = explorer.cells
    assert loop["title"] == "loop"
    assert [1, 0, 1] in loop["spans"]


def test_a_program_that_changes(session: Session, page: Page) -> None:
    before = page.explorer.table
    session.run("%%fluid more\nz = layers.tanh(h)")
    assert page.explorer.table == before, "nobody looks"
    page.ask("shown")
    assert "tanh" in table_of(page.explorer)["words"]
    session.run("%%fluid more\nz = layers.sigmoid(h)")
    until(lambda: _again(session) or "sigmoid" in table_of(page.explorer)["words"])
    assert "tanh" not in table_of(page.explorer)["words"]
    assert "more" in [cell["title"] for cell in page.explorer.cells]
    page.ask("hidden")
    session.run("%fluid drop more")
    until(lambda: _again(session) or True)
    assert "sigmoid" in table_of(page.explorer)["words"]
    page.ask("shown")
    assert "sigmoid" not in table_of(page.explorer)["words"]


def _again(session: Session) -> None:
    """Sends the updates that were delayed, as the loop of a notebook does."""
    session.run("pass")


def test_a_cell_of_it(session: Session, page: Page) -> None:
    explorer = Explorer(session.bench, "net")
    assert {row[4] for row in table_of(explorer)["rows"]} == {0}
    other = Page(explorer)
    other.ask("shown")
    session.run("%fluid drop net loss")
    until(lambda: _again(session) or other.heard)
    assert "problem" in other.heard[-1]
    assert len(table_of(explorer)["rows"]) > 0, "what it showed stays"


def test_a_large_program_comes_in_two_parts(session: Session) -> None:
    session.run("%%fluid long\nh = layers.data('x', [2])\nfor _ in range(1000):\n    h = layers.relu(h)")
    explorer = Explorer(session.bench)
    table = table_of(explorer)
    assert len(table["rows"]) + table["left"] == 1000
    assert table["left"] > 0
    until(lambda: _again(session) or table_of(explorer)["left"] == 0)
    assert len(table_of(explorer)["rows"]) == 1000


def test_what_is_selected(session: Session, page: Page) -> None:
    other = Page(Explorer(session.bench))
    page.ask("select", block=0, index=2)
    assert other.heard == [{"chosen": {"ops": ((0, 2),), "variable": "", "cell": ""}}]
    assert page.heard == [], "it knows"
    chosen = session.bench.selection.chosen
    assert chosen is not None
    assert chosen.ops == ((0, 2),)
    other.ask("select_variable", name="h")
    assert page.heard[-1]["chosen"]["variable"] == "h"
    page.ask("select_cell", title="net")
    assert other.heard[-1]["chosen"]["ops"] == ((0, 0), (0, 1), (0, 2), (0, 3))
    session.bench.selection.choose(Chosen(fluid.Program(), ((0, 0),)))
    assert len(page.heard) == 1, "another program"
    late = Page(Explorer(session.bench))
    session.bench.selection.choose(chosen)
    late.heard.clear()
    late.ask("shown")
    assert late.heard[-1]["chosen"]["ops"] == ((0, 2),)


def test_sheets_and_values(session: Session, page: Page) -> None:
    page.ask("sheet", type="relu", width=60)
    assert page.heard[-1]["lines"][0][0] == ("relu", "forward")
    page.ask("sheet", type="nothing_like_it", width=60)
    assert page.heard[-1]["lines"] == []
    page.ask("value", name="h.w_0")
    assert page.heard[-1]["lines"] == []
    fluid.global_scope().var("h.w_0").get_tensor().set(np.ones((2, 2), "float32"))
    page.ask("value", name="h.w_0")
    assert "[1, 1, 1, 1]" in str(page.heard[-1]["lines"])
    page.ask("no_such_thing")
    page.ask("graph", wrong=1)
    assert "problem" in page.heard[-1]


def test_a_debug_session(session: Session, page: Page) -> None:
    page.ask("shown")
    feed = {"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}
    names = fluid.default_main_program().global_block().vars
    debugger = fluid.debug(feed={name: value for name, value in feed.items() if name in names})
    until(lambda: _again(session) or page.explorer.position.get("op") == [0, 0])
    debugger.step()
    until(lambda: page.explorer.position["op"] == [0, 1])
    page.ask("value", name=table_of(page.explorer)["vars"][0][0])
    assert "debug session" in until(lambda: next((m["where"] for m in page.heard if "value" in m), None))
    debugger.close()
    until(lambda: _again(session) or page.explorer.position == {})


def test_graphs(session: Session, page: Page, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    page.ask("graph", span="")
    graph = page.wait("graph")
    assert "no dot on PATH" in graph["why"]
    assert f'id="{graph["uid"]}op_0_0"' in graph["svg"]
    page.heard.clear()
    page.ask("graph", span="9")
    assert page.wait("graph")["svg"] == ""
    long = fluid.Program()
    with fluid.program_guard(long, fluid.Program()):
        h = fluid.layers.data("x", [2])
        for _ in range(400):
            h = fluid.layers.relu(h)
    picture = read_program(long)
    top = drawn(picture, "", threading.Event())
    spans = list(top.folds.values())
    assert spans[0] == "0:0-19"
    assert drawn(picture, spans[0], threading.Event()).folds == {}
    assert len(level(picture).root.ops) == len(spans)


def test_a_graph_that_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    stop = threading.Event()
    fluid.layers.relu(fluid.layers.data("x", [2]))
    picture: ProgramPicture = read_program(fluid.default_main_program())
    threading.Timer(0.2, stop.set).start()
    assert dot_svg(picture, stop=stop).why == "the layout was cancelled"


def test_a_closed_explorer_is_gone(session: Session) -> None:
    model(session)
    before = list(session.shell.events.callbacks["post_run_cell"])
    explorer = Explorer(session.bench)
    assert session.shell.events.callbacks["post_run_cell"] != before
    explorer.close()
    assert session.shell.events.callbacks["post_run_cell"] == before
    held = weakref.ref(explorer)
    del explorer
    gc.collect()
    assert held() is None


def test_unloading_takes_everything_back(session: Session) -> None:
    model(session)
    callbacks = session.shell.events.callbacks["post_run_cell"]
    before = list(callbacks)
    explorer = Explorer(session.bench)
    session.run("%unload_ext fluidnb")
    assert callbacks == before
    explorer.close()


def test_changes_are_told_not_too_often(session: Session) -> None:
    told: list[int] = []
    changes = ChangeNotifier(session.shell)
    changes.observe(look := lambda: told.append(1))
    changes._again = time.monotonic() + 3600
    session.run("pass")
    assert told == [1], "a shell without a loop puts nothing off"
    changes.forget(look)
    session.run("pass")
    assert told == [1]


def test_the_command(session: Session) -> None:
    model(session)
    shown = session.run("%fluid explore")
    assert shown.startswith("program  1 block, 19 ops")
    assert "mul" in session.run("%fluid explore net")
    assert "Variable h" in session.run("%fluid explore h")
    error, _ = session.fail("%fluid explore 7")
    assert isinstance(error, NotFound)
    assert "uniform_random" in session.run("%fluid explore --startup")


def test_the_faces_that_stay(session: Session, page: Page) -> None:
    bundle, _ = page.explorer._repr_mimebundle_()
    assert bundle["text/plain"].startswith("program  1 block, 19 ops")
    assert "<details" in bundle["text/html"] and 'type="search"' in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
