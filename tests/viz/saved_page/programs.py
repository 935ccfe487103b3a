"""Sessions whose pages the tests read."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug import Session

#: The training step whose batch has a NaN, from 0, and its place in the batch.
PLANTED, ROW, COLUMN = 2, 7, 2


def lstm_training(steps: int = 3) -> Session:
    """A session of an LSTM's training; the batch of the step `PLANTED` has one NaN."""
    x, y = layers.data("x", shape=[6], lod_level=1), layers.data("y", shape=[1])
    hidden, _ = layers.dynamic_lstm(layers.fc(x, 64), 64)
    predicted = layers.fc(layers.sequence_pool(hidden, "max"), 1)
    loss = layers.mean(layers.square_error_cost(predicted, y))
    fluid.optimizer.Adam(0.01).minimize(loss)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    session = Session(fluid.default_main_program())
    for step in range(steps):
        session.begin(batch(step), [loss])
        session.continue_()
    return session


def batch(step: int) -> dict[str, Any]:
    """The batch of a step: three sequences of 20 rows together."""
    rng = np.random.RandomState(step)
    rows = rng.rand(20, 6).astype("float32")
    if step == PLANTED:
        rows[ROW, COLUMN] = np.nan
    return {"x": fluid.create_lod_tensor(rows, [[6, 4, 10]], fluid.CPUPlace()), "y": rng.rand(3, 1).astype("float32")}


def large(steps: int, operators: int, side: int) -> Session:
    """A session paused after so many steps of a chain of operators on matrices."""
    h = layers.data("x", shape=[side])
    for _ in range(operators):
        h = layers.scale(h, 1.001)
    session = Session(fluid.default_main_program(), {"x": np.random.RandomState(0).randn(side, side).astype("float32")})
    session.step(steps)
    return session
