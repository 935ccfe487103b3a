"""Programs and executors for several devices, on one place; `tests/distributed/test_places.py` has several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import NotBuiltYet, OpTypeError, OpValueError

CPU = fluid.CPUPlace()


def training() -> tuple[Any, Any, dict[str, Any]]:
    """A loss with SGD behind, initialised; the program without SGD; and a batch."""
    x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.Executor(CPU).run(fluid.default_startup_program())
    rng = np.random.default_rng(0)
    return loss, test, {"x": rng.normal(size=(8, 3)).astype("float32"), "y": rng.normal(size=(8, 1)).astype("float32")}


def test_a_compiled_program_runs_like_the_program() -> None:
    loss, _, feed = training()
    build, run = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.reduce_strategy, run.num_threads = fluid.BuildStrategy.ReduceStrategy.Reduce, 4
    build.memory_optimize = build.fuse_all_reduce_ops = True
    program = fluid.CompiledProgram(fluid.default_main_program())
    assert program.with_data_parallel(loss.name, build, run) is program
    executor = fluid.Executor(CPU)
    losses = [executor.run(program, feed=feed, fetch_list=[loss])[0].item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 5
    assert executor.run(program, feed=[feed], fetch_list=[loss])[0].item() < losses[-1]
    assert executor._hot is not None and executor._hot.desc is fluid.default_main_program().desc  # one place: no copy
    with pytest.raises(OpTypeError, match="feed requires dict"):
        executor.run(program, feed=[feed, feed], fetch_list=[loss])


def test_a_parallel_executor_trains_and_tests_over_one_scope() -> None:
    loss, test, feed = training()
    train = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
    check = fluid.ParallelExecutor(use_cuda=False, main_program=test, share_vars_from=train)
    first = check.run([loss.name], feed=feed)[0].item()
    assert train.run(fetch_list=[loss], feed=[feed])[0].item() == pytest.approx(first)
    second = check.run((loss.name,), feed_dict=feed, return_numpy=False)[0]
    assert np.array(second).item() < first and train.device_count == 1
    train.drop_local_exe_scopes()
    own = fluid.Scope()
    with pytest.raises(fluid.core.EnforceNotMet, match="startup"):
        fluid.ParallelExecutor(False, main_program=test, scope=own).run([loss.name], feed)


def test_what_cannot_be_done_is_said() -> None:
    main = fluid.default_main_program()
    with pytest.raises(OpTypeError, match="program_or_graph of CompiledProgram must be a Program"):
        fluid.CompiledProgram(main.desc)
    with pytest.raises(OpTypeError, match="main_program of ParallelExecutor must be a Program"):
        fluid.ParallelExecutor(False, main_program=main.desc)
    with pytest.raises(OpTypeError, match="share_vars_from of ParallelExecutor must be"):
        fluid.ParallelExecutor(False, share_vars_from=fluid.Executor(CPU))
    with pytest.raises(OpValueError, match="not made for trainer 0 of 2"):
        fluid.ParallelExecutor(False, num_trainers=2)
    with pytest.raises(OpValueError, match="another length than there are places"):
        fluid.ParallelExecutor(False).run([], feed=[{}, {}])
    with pytest.raises(NotBuiltYet, match="with_inference_optimize"):
        fluid.CompiledProgram(main).with_inference_optimize(None)
    with pytest.raises(OpTypeError, match="Executor requires Program"):
        fluid.Executor(CPU).run(main.global_block())


def test_strategies_have_the_fields_and_defaults_of_fluid() -> None:
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    assert not (build.fuse_elewise_add_act_ops or build.memory_optimize or build.enable_inplace)
    assert (build.debug_graphviz_path, build.num_trainers, build.remove_unnecessary_lock) == ("", 1, True)
    assert (execution.num_threads, execution.allow_op_delay, execution.use_cuda) == (0, False, True)
    execution._dry_run = True  # scripts of 1.4 set it; without effect
