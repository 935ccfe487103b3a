"""Running averages of batch_norm: each trainer has its own, and those of trainer 0 are saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.distributed import LocalEngine, split_batches
from fluidnb.distributed.running_values import RunningValues, running_names
from tests.distributed.networks import batches, built, collective, divided, one_process

AVERAGES = ["batch_norm_0.w_1", "batch_norm_0.w_2"]


def normalized() -> fluid.Variable:
    """A layer with running averages of its mean and variance."""
    return layers.mean(layers.batch_norm(layers.fc(layers.data("x", [5]), 3), momentum=0.5))


def schedule() -> Any:
    return fluid.optimizer.Adam(layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01]))


@pytest.mark.parametrize("divide", [divided, collective])
def test_those_of_trainer_0_are_among_the_parameters_and_saved(divide: Any, tmp_path: Path) -> None:
    parts = built(normalized, schedule)
    feeds = batches(parts[0], 1)  # one step: the mean of the first layer depends on the initial values alone
    _, expected = one_process(built(normalized, schedule), [{"x": feeds[0]["x"][:4]}])
    transpiler = divide(parts)
    with LocalEngine(transpiler) as engine:
        engine.train(split_batches(feeds, 2))
        parameters = engine.parameters()
        program = transpiler.get_trainer_program()
        with fluid.scope_guard(engine.scopes["trainer:0"]):
            fluid.io.save_persistables(fluid.Executor(), str(tmp_path), program)
    other = engine.scopes["trainer:1"]
    for name in AVERAGES:
        np.testing.assert_allclose(parameters[name], expected[name], rtol=1e-5)
        assert not np.allclose(np.array(other.find_var(name).get_tensor()), expected[name], rtol=1e-3)
    loaded = fluid.Scope()
    with fluid.scope_guard(loaded):
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path), program)
    for name, value in parameters.items():
        assert np.array_equal(np.array(loaded.find_var(name).get_tensor()), value), name


def test_schedules_and_parameters_are_not_running_values() -> None:
    parts = built(normalized, schedule)
    assert running_names(parts[0]) == AVERAGES
    assert running_names(divided(parts).get_trainer_program()) == AVERAGES


def test_a_restarted_trainer_takes_the_newest_that_are_not_later(tmp_path: Path) -> None:
    program = built(normalized, schedule)[0]
    first, second = (RunningValues(program, tmp_path, number, every=2) for number in range(2))
    scope = fluid.Scope()

    def fill(value: float) -> None:
        for name in AVERAGES:
            scope.var(name).get_tensor().set(np.full(3, value, "float32"), fluid.CPUPlace())

    for step in (1, 2, 3, 4, 6):
        fill(step)
        first.save(scope, step)
        second.save(scope, 10 + step)  # only trainer 0 saves
    assert first.checkpoints.steps() == [2, 4, 6]
    for running, step, expected in ((second, 5, 4), (first, 3, 2), (second, 9, 2), (first, 1, 0)):
        fill(0)
        running.load(scope, step)  # what is later belongs to another course of training, and trainer 0 removes it
        assert np.array(scope.find_var(AVERAGES[0]).get_tensor()).tolist() == [expected] * 3
