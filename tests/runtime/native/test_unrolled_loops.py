"""Native code makes the copies between two iterations of a recurrent network at once, with numpy's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.runtime import native_calls, wait_for_native_code
from tests.runtime.recurrent_training import losses, network

FEEDS = [np.random.default_rng(k).normal(size=(6, rows, 4)).astype("float32") for k, rows in enumerate((3, 3, 5, 5, 3))]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_training_has_the_bits_of_numpy(dropout: float) -> None:
    loss = network(dropout=dropout)
    fluid.set_flags({"FLAGS_native": "off"})
    plain = losses(loss, FEEDS * 10, interpreted=False)
    fluid.set_flags({"FLAGS_native": "require"})
    assert losses(loss, FEEDS * 10, interpreted=False) == plain
    fluid.set_flags({"FLAGS_native": "auto"})
    assert losses(loss, FEEDS * 10, interpreted=False) == plain
    assert wait_for_native_code()


def copies(mode: str, runs: int) -> list[Any]:
    """How many calls the native calls of copies alone replace, and how often they are made."""
    fluid.set_flags({"FLAGS_native": mode})
    x = layers.data("x", [6, 2, 4], append_batch_size=False)
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        h = rnn.memory(shape=[-1, 4], batch_ref=x)
        hidden = layers.tanh(layers.elementwise_add(now, h))
        rnn.update_memory(h, hidden)
        rnn.step_output(hidden)
    last, exe = rnn(), fluid.Executor()
    for _ in range(runs):
        (out,) = exe.run(feed={"x": np.ones((6, 2, 4), "float32")}, fetch_list=[last])
    assert wait_for_native_code()
    np.testing.assert_allclose(out[:2, 0, 0], [np.tanh(1.0), np.tanh(1 + np.tanh(1.0))], rtol=1e-6)
    made = [call for call in native_calls(fluid.default_main_program()) if call.ops[0].desc.optype == "recurrent"]
    return [(call.replaced, call.times) for call in made]


@pytest.mark.parametrize(("mode", "runs"), [("require", 3), ("auto", 40)])
def test_copies_are_calls_of_native_code(mode: str, runs: int) -> None:
    # two copies into the first iteration and two out of the last one; four between two iterations
    assert copies(mode, runs) == [(4, 2), (20, 5)]
