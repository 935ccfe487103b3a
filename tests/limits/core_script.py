"""A program that is built, trained, shown, saved and debugged, for `test_without_threads.py`."""

from __future__ import annotations

import tempfile

import numpy as np

import fluidnb as fluid
from fluidnb import viz
from fluidnb.debug.session import Session
from fluidnb.optimizer.base import Optimizer


def main() -> None:
    """Train with each optimizer, and debug."""
    fluid.seed(1)
    for optimizer in (fluid.optimizer.SGD, fluid.optimizer.Adam, fluid.optimizer.Adagrad):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
            _train(optimizer(0.01))


def _train(optimizer: Optimizer) -> None:
    x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
    h = fluid.layers.fc(x, 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(h, y))
    optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((4, 13), "f4"), "y": np.ones((4, 1), "f4")}
    losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in fluid.progress(range(50), watch=loss)]
    assert losses[-1] < losses[0], losses
    with tempfile.TemporaryDirectory() as folder:
        fluid.io.save_inference_model(folder, ["x"], [h], exe)
        assert fluid.open(folder).program.global_block().ops
    program = fluid.default_main_program()
    assert "square" in str(program) and "<svg" in viz.program_svg(viz.read_program(program))
    assert program._repr_html_()
    _debug(feed, loss, exe)


def _debug(feed: dict[str, np.ndarray], loss: fluid.framework.Variable, exe: fluid.Executor) -> None:
    session = fluid.debug(feed=feed, fetch_list=[loss])
    assert session.inline
    assert (session.step(3).at, session.back().at) == (3, 2)
    before = session["x"]
    session.edit("x", 0.0)
    assert not session["x"].any() and session.back().at == 2 and (session["x"] == before).all()
    assert session.continue_().state == "done" and session.results[0].size == 1
    session.stop_at("op square")
    here = session.reverse_continue().op
    assert here is not None and here.type == "square"
    session.close()
    with fluid.debug() as session:
        session.stop_at("op square")
        session.on_stop = Session.continue_
        assert exe.run(feed=feed, fetch_list=[loss])[0].size == 1
