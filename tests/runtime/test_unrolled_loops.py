"""Recurrent networks from their second run on: all iterations are one list of calls, with the same results."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers, op
from fluidnb.errors import EnforceNotMet
from fluidnb.op import same
from fluidnb.runtime.replay.unrolled_loop import UnrolledLoop
from tests.runtime.recurrent_training import losses, network


@pytest.fixture(autouse=True)
def a_fresh_program() -> Iterator[None]:
    with fluid.fresh():
        yield


def unrolled(exe: fluid.Executor) -> list[Any]:
    """The loops of the last program of an executor that are lists of calls."""
    hot: Any = exe._hot
    bodies = {id(body.unrolled) for body in hot.lowered.bodies.values() if body.unrolled is not None}
    return [loop for loop in gc.get_objects() if type(loop) is UnrolledLoop and id(loop.code) in bodies]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("reverse", [False, True])
def test_training_has_the_bits_of_the_interpreter(dropout: float, reverse: bool) -> None:
    loss = network(dropout=dropout, reverse=reverse)
    rng = np.random.default_rng(0)
    feeds = [rng.normal(size=(6, rows, 4)).astype("float32") for rows in (3, 3, 3, 5, 5, 5, 3, 3, 2)]
    assert losses(loss, feeds, interpreted=False) == losses(loss, feeds, interpreted=True)


def test_its_iterations_are_one_list_from_the_second_run_on() -> None:
    loss, exe = network(), fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((6, 2, 4), "float32")}
    counts = []
    for _ in range(3):
        exe.run(feed=feed, fetch_list=[loss])
        counts.append(len(unrolled(exe)))
    assert counts == [0, 2, 2]
    before = {id(loop) for loop in unrolled(exe)}
    exe.run(feed=feed, fetch_list=[loss])
    assert {id(loop) for loop in unrolled(exe)} == before


def failing(x: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
    """Copy, unless there is a 7; a 9 is Ctrl-C."""
    if (x == 7).any():
        raise ZeroDivisionError("a seven")
    if (x == 9).any():
        signal.raise_signal(signal.SIGINT)
    np.copyto(out, x)


@pytest.fixture
def sums() -> Iterator[Any]:
    """A program that runs an operator that may fail in each of four steps; its result."""
    op.op("may_fail", inputs={"X": "any"}, outputs={"Out": "same"}, infer=same())(
        lambda b: b(failing, b["X"], b["Out"])
    )
    x = layers.data("x", [4, 1], append_batch_size=False)
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        block = fluid.default_main_program().current_block()
        out = block.create_var(name="copied", shape=[1], dtype="float32")
        block.append_op("may_fail", {"X": now}, {"Out": out})
        rnn.step_output(layers.scale(out, 2.0))
    yield rnn()
    op.remove_op("may_fail")


def test_an_error_names_the_iteration_and_leaves_the_loop_as_it_was(sums: Any) -> None:
    exe, good = fluid.Executor(), np.arange(4, dtype="float32").reshape(4, 1)
    said, lists = [], []
    for x in (good + 5, good, good, good, good + 5, good, good, good):
        try:
            (out,) = exe.run(feed={"x": x}, fetch_list=[sums])
        except EnforceNotMet as error:
            said.append(str(error))
        else:
            np.testing.assert_array_equal(out, 2 * x)
            lists.append(len(unrolled(exe)))
    assert lists == [0, 1, 1, 0, 1, 1]
    assert said[0] == said[1] and "iteration 2 of recurrent (op 0 in block 0)" in said[0]


def test_ctrl_c_names_the_operator_and_the_iteration(sums: Any) -> None:
    exe, good = fluid.Executor(), np.arange(4, dtype="float32").reshape(4, 1)
    for _ in range(3):
        exe.run(feed={"x": good}, fetch_list=[sums])
    with pytest.raises(KeyboardInterrupt) as stopped:
        exe.run(feed={"x": good + 8}, fetch_list=[sums])
    before, inside = stopped.value.__notes__
    assert before == "Interrupted before op 1 (scale) in block 1."
    assert inside.startswith("In iteration 1 of recurrent (op 0 in block 0), test_unrolled_loops.py:")
    (out,) = exe.run(feed={"x": good}, fetch_list=[sums])
    np.testing.assert_array_equal(out, 2 * good)
