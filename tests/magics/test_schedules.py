"""Cells with learning-rate schedules: the counter that several cells share, switches, and evaluators."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from tests.magics.conftest import Session

NET = "%%fluid net\nx = layers.data('x', shape=[4])\nloss = layers.mean(layers.fc(x, 1))"
RATE = "%%fluid rate\nrate = layers.exponential_decay(0.1, 10, 0.5)"
OTHER = "%%fluid other\nother = layers.piecewise_decay([2, 4], [0.3, 0.2, 0.1])"
TRAIN = "%%fluid train\nops, grads = fluid.optimizer.SGD(rate).minimize(loss)"
CELLS = {"net": NET, "rate": RATE, "other": OTHER, "train": TRAIN}


def again(session: Session, cells: list[str]) -> tuple[bytes, bytes]:
    """The bytes after these cells in a new session."""
    with fluid.fresh():
        session.shell.run_line_magic("unload_ext", "fluidnb")
        session.shell.run_line_magic("load_ext", "fluidnb")
        for cell in cells:
            session.run(cell)
        return session.state()


@pytest.mark.parametrize("edited", CELLS)
def test_running_again_replaces(session: Session, edited: str) -> None:
    for cell in CELLS.values():
        session.run(cell)
    before = session.state()
    session.run(CELLS[edited])
    assert session.state() == before
    assert session.ops().count("increment") == 1


@pytest.mark.parametrize(
    ("edited", "text"),
    [
        ("rate", "%%fluid rate\nrate = layers.noam_decay(64, 10)"),
        ("rate", "%%fluid rate\nrate = 0.1"),
        ("other", "%%fluid other\nother = 3"),
        ("net", NET.replace("fc(x, 1)", "fc(x, 2)")),
    ],
)
def test_an_edited_cell_is_as_if_it_had_been_so_from_the_start(session: Session, edited: str, text: str) -> None:
    for cell in CELLS.values():
        session.run(cell)
    session.run(text)
    state = session.state()
    assert again(session, [text if name == edited else cell for name, cell in CELLS.items()]) == state


def test_dropping_the_cell_that_made_the_counter(session: Session) -> None:
    for cell in (NET, RATE, OTHER):
        session.run(cell)
    session.run("%fluid drop rate")
    state = session.state()
    assert session.ops().count("increment") == 1
    assert again(session, [NET, OTHER]) == state


def test_the_rate_has_the_name_that_the_cell_gives_it(session: Session) -> None:
    for cell in (NET, RATE, TRAIN):
        session.run(cell)
    assert session.names["rate"].name == "rate"
    session.run("exe = fluid.Executor(fluid.CPUPlace())\nout = exe.run(fluid.default_startup_program())")
    session.run("for _ in range(3): out = exe.run(feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[rate])")
    np.testing.assert_allclose(session.names["out"][0], [0.1 * 0.5**0.2], rtol=1e-6)


def test_an_evaluator_in_a_cell(session: Session) -> None:
    cell = "%%fluid metric\nlabel = layers.data('label', shape=[1], dtype='int64')\n"
    cell += "accuracy = fluid.evaluator.Accuracy(layers.softmax(x), label)"
    for text in (NET, cell):
        session.run(text)
    before = session.state()
    session.run(cell)
    assert session.state() == before
    session.run("accuracy.reset()\nexe = fluid.Executor(fluid.CPUPlace())")
    feed = "{'x': np.eye(4, dtype='float32'), 'label': np.array([[0], [1], [2], [0]])}"
    session.run(f"out = exe.run(feed={feed}, fetch_list=accuracy.metrics)\ntotal = accuracy.eval(exe)")
    assert session.names["out"][0] == session.names["total"] == [0.75]
