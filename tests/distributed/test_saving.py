"""Variables of a trainer with parameter servers, into files: received from the servers, or saved by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.distributed import LocalEngine, split_batches
from fluidnb.errors import FluidError
from fluidnb.testing import run_op
from fluidnb.values import VarType
from tests.distributed.networks import batches, built, divided, shared_table, wide_regression


def momentum() -> Any:
    return fluid.optimizer.Momentum(0.01, 0.9)


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def saved(path: Path) -> Any:
    """The value of a file."""
    return run_op("load", attrs={"file_path": str(path)})["Out"]


def test_slices_and_accumulators_are_received_and_saved_whole(tmp_path: Path) -> None:
    parts = built(wide_regression, momentum)
    transpiler = divided(parts)
    with LocalEngine(transpiler) as engine:
        for count in (2, 1):  # the second call of train is not disturbed
            engine.train(split_batches(batches(parts[0], count), 2))
            with fluid.scope_guard(engine.scopes["trainer:0"]):
                fluid.io.save_persistables(fluid.Executor(), str(tmp_path), transpiler.get_trainer_program())
        values = engine.values()
    assert {"fc_w", "fc_b", "fc_w_velocity_0", "learning_rate_0"} <= {path.name for path in tmp_path.iterdir()}
    assert not [path.name for path in tmp_path.iterdir() if "block" in path.name or "GRAD" in path.name]
    for path in tmp_path.iterdir():
        assert np.array_equal(saved(path), values[path.name]), path.name
    assert values["fc_w_velocity_0"].any()


def test_running_averages_are_saved_too_and_all_in_one_file(tmp_path: Path) -> None:
    def network() -> fluid.Variable:
        x, y = fluid.layers.data("x", [4]), fluid.layers.data("y", [1])
        hidden = fluid.layers.batch_norm(fluid.layers.fc(x, 3))
        return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))

    parts = built(network, sgd)
    transpiler = divided(parts, sync_mode=False)
    with LocalEngine(transpiler) as engine:
        engine.train(split_batches(batches(parts[0], 2), 2))
        scope = engine.scopes["trainer:0"]
        with fluid.scope_guard(scope):
            fluid.io.save_persistables(fluid.Executor(), str(tmp_path), transpiler.get_trainer_program(), "all")
        parameters = engine.parameters()
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path), parts[0], "all")
        for name, value in parameters.items():
            assert np.array_equal(np.array(scope.find_var(name).get_tensor()), value), name
    assert parameters["batch_norm_0.w_1"].any()


def test_servers_save_the_rows_of_a_table(tmp_path: Path) -> None:
    parts = built(shared_table, sgd)
    transpiler = divided(parts)
    with LocalEngine(transpiler) as engine:
        engine.train(split_batches(batches(parts[0], 2), 2))
        with fluid.scope_guard(engine.scopes["trainer:0"]):
            fluid.io.save_persistables(fluid.Executor(), str(tmp_path), transpiler.get_trainer_program())
        table = engine.values()["table"]
    assert not (tmp_path / "table").exists()
    for number in range(2):
        name = f"table_{number}"
        program, scope = fluid.Program(), fluid.Scope()
        program.global_block().create_var(
            name=name, shape=[1000, 32], dtype="float32", type=VarType.SELECTED_ROWS, persistable=True
        )
        with fluid.scope_guard(scope):
            fluid.io.load_vars(fluid.Executor(), str(tmp_path / "__lookup_table__"), program, [name])
        rows = scope.find_var(name).value
        assert rows.rows() == list(range(number, 1000, 2))
        assert np.array_equal(np.asarray(rows.value), table[number::2])


def test_a_variable_that_no_server_keeps_is_refused(tmp_path: Path) -> None:
    program = fluid.Program()
    program.global_block().append_op(
        "checkpoint_notify", {}, {}, {"epmap": ["ps:0"], "dir": str(tmp_path), "lookup_table": "tabel"}
    )
    transpiler = divided(built(shared_table, sgd))
    with LocalEngine(transpiler), pytest.raises(FluidError, match=r"ps:0 keeps no variable tabel(.|\n)*table"):
        fluid.Executor().run(program)
    with pytest.raises(FluidError, match="No engine serves the endpoint ps:"):
        fluid.io.save_persistables(fluid.Executor(), str(tmp_path), transpiler.get_trainer_program())
