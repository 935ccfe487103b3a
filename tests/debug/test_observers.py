"""Those who look at a session: what they are told, and what they may ask while they are told it."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug.debugger import Debugger
from fluidnb.errors import EnforceNotMet
from fluidnb.runtime.interrupt import install


@pytest.fixture
def session():
    x = layers.data("x", shape=[2])
    layers.log(layers.relu(x))
    begun = fluid.debug(feed={"x": np.ones((1, 2), "float32")})
    yield begun
    begun.close()


def test_an_observer_may_look_but_not_walk(session):
    seen, refused = [], []

    def look(snapshot):
        seen.append(session.names())
        try:
            session.step()
        except EnforceNotMet as error:
            refused.append(str(error))

    session.observe(look)
    session.step()
    assert "relu_0.tmp_0" in seen[-1] and "An observer may only inspect" in refused[-1]
    session.forget(look)
    session.step()
    assert len(seen) == 2


def test_settings_are_told_and_leave_the_error_and_what_was_written(session):
    told = []
    session.observe(told.append)
    session.step()
    assert told[-1].wrote == ("relu_0.tmp_0",)
    made = session.stop_at("op log")
    session.watch("x")
    assert told[-1].wrote == ("relu_0.tmp_0",) and told[-1].watches == (("x", "[[1. 1.]]"),)
    session.clear(made.number)
    assert [s.at for s in told] == [0, 1, 1, 1, 1]


def test_how_far_a_walk_came_is_known_and_that_it_is_closed(session):
    session.continue_()
    session.back(2)
    assert (session.snapshot.at, session.snapshot.reached) == (0, 2)
    told = []
    session.observe(told.append)
    session.close()
    assert told[-1].closed and told[-1].state == "paused"


def test_a_breakpoint_that_raises_leaves_the_session_standing(session):
    session.stop_at("when x + 'a'")
    with pytest.raises(Exception, match="ufunc"):
        session.continue_()
    assert session.snapshot.state == "paused" and "a breakpoint raised" in session.snapshot.reason


def test_an_edit_seen_from_a_block_around(session):
    session.do(Debugger.edit, "x", 3.0, 0)
    assert session["x"].tolist() == [[3.0, 3.0]]
    session.back()
    assert session["x"].tolist() == [[1.0, 1.0]]


def test_ctrl_c_reaches_whoever_waits_while_a_run_stands_still():
    y = layers.relu(layers.fill_constant([2], "float32", 1.0))
    install()  # as a run before this one in the same cell does
    heard = []

    def wait(session):
        try:
            signal.raise_signal(signal.SIGINT)
            threading.Event().wait(60)
        except KeyboardInterrupt:
            heard.append(session.snapshot.reason)
            session.continue_()

    with fluid.debug() as session:
        session.on_stop = wait
        session.stop_at("op relu")
        [out] = fluid.Executor().run(fetch_list=[y])
    session.close()
    assert out.tolist() == [1.0, 1.0] and heard == ["breakpoint op relu"]
