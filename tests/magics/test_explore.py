"""%fluid show with options, graph, tree, uses: a program explored from cells."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from IPython.core.error import UsageError

import fluidnb_magics.widgets
from fluidnb.errors import FluidError, NotFound, OpValueError
from fluidnb.extras import MissingPackage
from fluidnb.viz import Picture
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.completion import Completion
from tests.magics.conftest import Session
from tests.magics.test_cells import LOOP, model


@pytest.fixture
def pages(session: Session, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The HTML that a notebook would show."""
    made: list[str] = []

    def show(shell: object, lines: Sequence[Line], html: Callable[[], str] | None = None, svg: object = None) -> None:
        made.append(Picture(lines, html)._repr_html_())

    for name in ("graph.show", "tree.show", "uses.show", "show.display"):
        monkeypatch.setattr(f"fluidnb_magics.commands.{name}", show)
    return made


def test_search_role_and_fold(session: Session) -> None:
    model(session)
    assert "of 19 ops: sgd" in session.run("%fluid show --search sgd")
    shown = session.run("%fluid show --role backward,optimizer --fold layers")
    assert "forward" not in shown.splitlines()
    assert re.search(r"▸ \d+ ops  ", shown)
    shown = session.run('%fluid show --search "op:mul cell:net"')
    assert "h.tmp_0 = mul(X=x, Y=h.w_0)" in shown
    assert "grad" not in shown
    assert "conv" not in session.run("%fluid show net --fold cells")
    error, _ = session.fail("%fluid show --search ml")
    assert isinstance(error, NotFound)
    assert '"mul"' in str(error)
    error, _ = session.fail("%fluid show --role back")
    assert isinstance(error, OpValueError)
    error, _ = session.fail("%fluid show --fold cell")
    assert '"cells"' in str(error)


def test_an_operator_alone(session: Session) -> None:
    model(session)
    shown = session.run("%fluid show 0:0")
    assert shown.startswith("0:0  mul  forward  cell net, line 2")
    assert "writes  Out  h.tmp_0" in shown
    assert "kernels" in shown
    error, _ = session.fail("%fluid show 0:99")
    assert "no such operators" in str(error)
    assert "0:1-2 of 19 ops" in session.run("%fluid show 0:1-2")


def test_graph(session: Session) -> None:
    model(session)
    shown = session.run("%fluid graph")
    assert "╭── " in shown
    assert "─▸ " in shown
    shown = session.run("%fluid graph net")
    assert "mul" in shown
    assert "grad" not in shown
    assert len(session.run("%fluid graph 0:1-2").splitlines()) == 3
    error, _ = session.fail("%fluid graph 7")
    assert isinstance(error, NotFound)
    error, _ = session.fail("%fluid graph --seconds 0")
    assert isinstance(error, UsageError)


def test_a_graph_of_a_block(session: Session) -> None:
    session.run(LOOP)
    by_index, by_name = session.run("%fluid graph 1"), session.run("%fluid graph turns")
    assert by_index.splitlines()[1:] == by_name.splitlines()[1:]
    assert "increment" in by_index


def test_a_long_chain_is_folded_and_opened(session: Session) -> None:
    session.run("%%fluid long\nh = layers.data('x', [2])\nfor _ in range(400):\n    h = layers.relu(h)")
    shown = session.run("%fluid graph")
    assert "folded to 20 nodes" in shown
    assert "20 ops  0:380-399" in shown
    assert "%fluid graph BLOCK:FIRST-LAST" in shown
    opened = session.run("%fluid graph 0:380-399")
    assert opened.count(" = relu(") == 20


def test_a_graph_in_a_notebook(
    session: Session, pages: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model(session)
    monkeypatch.setenv("PATH", str(tmp_path))
    session.run("%fluid graph")
    assert "A listing instead of a graph: there is no dot on PATH" in pages[-1]
    assert "fluidnb-op" in pages[-1]
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    dot.chmod(0o755)
    session.run("%fluid graph --seconds 1")
    assert "dot took more than 1 s" in pages[-1]
    dot.write_text("#!/bin/sh\necho '<svg><g id=\"graph0\"/></svg>'\n")
    session.run("%fluid graph")
    assert "<svg style=\"max-width:none\"><g id=" in pages[-1]
    assert "19 ops" in pages[-1]


def test_folds_in_a_notebook(session: Session, pages: list[str]) -> None:
    model(session)
    session.run("%fluid show --fold layers")
    assert "<details>" in pages[-1]
    session.run("%fluid show")
    assert "<details>" not in pages[-1]
    session.run("%fluid show --fold layers --text")
    assert pages[-1].startswith("<pre")


def test_tree(session: Session) -> None:
    session.run(LOOP)
    shown = session.run("%fluid tree")
    assert "└─ block 1  while  turns  from cell loop  2 ops  2 forward" in shown
    assert "uniform_random" not in session.run("%fluid tree --startup")


def test_uses(session: Session) -> None:
    model(session)
    shown = session.run("%fluid uses h.w_0")
    program, startup = shown.split("startup program")
    assert "written by 1 op" in program
    assert "cell net, line 2" in program
    assert "gradient  h.w_0@GRAD" in program
    assert "uniform_random" in startup
    session.run("other_name = h")
    assert "read by" in session.run("%fluid uses other_name")
    error, _ = session.fail("%fluid uses h.w_1")
    assert isinstance(error, FluidError)
    assert '"h.w_0"' in str(error)


def test_another_program(session: Session) -> None:
    session.run("%%fluid g --program gan\nz = layers.relu(layers.data('noise', [1]))")
    assert "relu" in session.run("%fluid show --program gan --search relu")
    assert "relu" in session.run("%fluid graph gan")
    assert "block 0" in session.run("%fluid tree --program gan")
    assert "relu" in session.run("%fluid uses noise --program gan")
    assert "relu" in session.run("%fluid show 0:0 --program gan")


def test_tab(session: Session) -> None:
    model(session)
    session.run(LOOP)

    def offered(text: str) -> list[str]:
        *words, start = text.split(" ")
        return [word for word in Completion(session.bench).offered(words) if word.startswith(start)]

    assert offered("%fluid show --role ba") == ["backward"]
    assert offered("%fluid show --fold la") == ["layers"]
    assert offered("%fluid show --search squ")[0] == "square"
    assert "h.w_0" in offered("%fluid uses h.")
    assert "turns" in offered("%fluid graph tu")
    assert offered("%fluid graph ne") == ["net"]
    assert offered("%fluid graph --sec") == ["--seconds"]
    assert offered("%fluid tree --st") == ["--startup"]
    session.run("%%fluid g --program gan\nlayers.data('noise', [1])")
    assert offered("%fluid tree --program ga") == ["gan"]


def test_without_widgets_the_extra_is_named(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("fluidnb_magics.widgets")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(fluidnb_magics, "widgets", fluidnb_magics.widgets)  # the import that fails replaces it
    monkeypatch.setitem(sys.modules, "anywidget", None)
    model(session)
    error, shown = session.fail("%fluid explore")
    assert isinstance(error, MissingPackage) and "%fluid explore needs the package anywidget" in shown
    assert "pip install 'fluidnb[notebook]'" in shown and "Traceback" not in shown
