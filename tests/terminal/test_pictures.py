"""Pictures of the program from inside a debug session: tree, graph, uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fluidnb as fluid
from fluidnb.debug.session import Session
from fluidnb.errors import NotFound, OpValueError
from fluidnb.terminal import COMMANDS, run_command
from fluidnb.viz import plain
from tests.viz.programs import counting


@pytest.fixture
def session() -> Iterator[Session]:
    """A session that stands at the first operator of a loop."""
    counting()
    started = fluid.debug(feed={})
    yield started
    started.close()


def said(session: Session, line: str, width: int = 0) -> str:
    """The output of a command."""
    return plain(run_command(session, line, width))


def test_tree(session: Session) -> None:
    first, second = said(session, "tree").splitlines()
    assert "4 forward" in first
    assert second.startswith("└─ block 1  while  2 ops  2 forward")


def test_graph(session: Session) -> None:
    assert said(session, "graph").count("─▸ ") == 3
    assert "increment" in said(session, "graph 1")
    assert "less_than" not in said(session, "graph 0:0-1")
    assert max(map(len, said(session, "graph", 80).splitlines())) <= 80
    with pytest.raises(NotFound, match="no block 3"):
        run_command(session, "graph 3")
    with pytest.raises(OpValueError, match="0:12-40"):
        run_command(session, "graph net")
    assert session.snapshot.at == 0


def test_uses(session: Session) -> None:
    shown = said(session, "uses fill_constant_0.tmp_0")
    assert "written by 3 ops" in shown
    assert "1:0  increment" in shown
    assert COMMANDS["uses"].offers == "vars"
    with pytest.raises(NotFound, match='"fill_constant_0.tmp_0"'):
        run_command(session, "uses fill_constant_0.tmp")
