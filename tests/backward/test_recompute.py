"""Recomputation: the same parameters after training, with less memory; what must not be computed twice is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import ArgumentError, OpTypeError, OpValueError
from fluidnb.viz.memory.reader import read_memory
from tests.layers.nests import ROWS, WIDTH, Nest

Built = tuple[Any, list[Any]]
FEED = np.random.default_rng(3).standard_normal((1024, 13)).astype("float32")


def mlp(depth: int = 4) -> Built:
    h, found = layers.data("x", [13]), []
    for _ in range(depth):
        h = layers.fc(h, 16, act="relu")
        found.append(h)
    return layers.mean(h), found[1:-1]


def deep() -> Built:
    h, found = layers.data("x", [13]), []
    for k in range(16):
        h = layers.softplus(layers.fc(h, 64, act="tanh"))
        if k % 4 == 3:
            found.append(h)
    return layers.mean(h), found


def normalized() -> Built:
    """Statistics of batches are updated once a step."""
    h, found = layers.data("x", [13]), []
    for _ in range(3):
        h = layers.batch_norm(layers.fc(h, 8), act="relu")
        found.append(h)
    return layers.mean(layers.square(h)), found


def dropped() -> Built:
    """Both passes see the same masks."""
    h, found = layers.data("x", [13]), []
    for _ in range(3):
        h = layers.tanh(layers.dropout(layers.fc(h, 32, act="tanh"), 0.5))
        found.append(h)
    return layers.mean(layers.square(h)), found


def skipping() -> Built:
    """An activation that is no checkpoint is read two segments later."""
    x = layers.data("x", [13])
    a = layers.fc(x, 8, act="tanh")
    b = layers.fc(layers.sigmoid(a), 8, act="tanh")
    c = layers.fc(layers.exp(b), 8, act="tanh")
    return layers.mean(layers.square(layers.elementwise_mul(c, layers.sin(a)))), [b, c]


def overwritten() -> Built:
    """A value that another operator overwrites, and what depends on it, is kept."""
    h = layers.fc(layers.data("x", [13]), 8, act="tanh")
    scaled = layers.scale(h, 1.5)
    g = layers.elementwise_add(scaled, h)
    layers.assign(layers.scale(h, 3.0), scaled)
    k = layers.elementwise_add(layers.exp(g), scaled)
    return layers.mean(layers.fc(k, 8, act="tanh")), [k]


def trained(build: Callable[[], Built], recompute: bool, steps: int = 3, rows: int = 32) -> tuple[Any, Any, Any]:
    """The program, the losses, and everything persistable after some steps of Adam."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, checkpoints = build()
        optimizer: Any = fluid.optimizer.Adam(0.01)
        if recompute:
            optimizer = fluid.optimizer.RecomputeOptimizer(optimizer)
            optimizer._set_checkpoints(checkpoints)
        optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        losses = [exe.run(main, feed={"x": FEED[:rows]}, fetch_list=[loss])[0] for _ in range(steps)]
        kept = {
            v.name: np.array(fluid.global_scope().find_var(v.name).get_tensor())
            for v in main.list_vars() if v.persistable
        }  # fmt: skip
    return main, losses, kept


def repeated(program: fluid.Program) -> list[str]:
    """The types of the operators that compute activations a second time."""
    ops = program.global_block().ops
    return [op.type for op in ops if any(".subprog_" in name for name in op.output_arg_names)]


@pytest.mark.parametrize("build", [mlp, deep, normalized, dropped, skipping, overwritten], ids=lambda b: b.__name__)
def test_training_gives_the_same_bits(build: Callable[[], Built]) -> None:
    _, plain, before = trained(build, False)
    main, losses, after = trained(build, True)
    assert repeated(main)
    np.testing.assert_array_equal(losses, plain)
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


def test_only_values_that_gradients_read_are_computed_again() -> None:
    """As Paddle 2.6.2 writes it, without the products and sums that it repeats for their shapes alone."""
    main, _, _ = trained(mlp, True, steps=1)
    lines = [
        f"{op.type} {' '.join(op.output_arg_names)}" for op in main.global_block().ops
        if op.desc.attrs["op_role"] == 1 and "fc_3" not in str(op.output_arg_names)
    ]  # fmt: skip
    assert lines == [
        "relu_grad fc_2.tmp_1@GRAD",
        "elementwise_add_grad fc_2.tmp_0@GRAD fc_2.b_0@GRAD",
        "mul_grad fc_1.tmp_2@GRAD fc_2.w_0@GRAD",
        "relu_grad fc_1.tmp_1@GRAD",
        "elementwise_add_grad fc_1.tmp_0@GRAD fc_1.b_0@GRAD",
        "mul fc_0.tmp_0.subprog_0",
        "elementwise_add fc_0.tmp_1.subprog_0",
        "relu fc_0.tmp_2.subprog_0",
        "mul_grad fc_0.tmp_2@GRAD fc_1.w_0@GRAD",
        "relu_grad fc_0.tmp_1@GRAD",
        "elementwise_add_grad fc_0.tmp_0@GRAD fc_0.b_0@GRAD",
        "mul_grad @EMPTY@ fc_0.w_0@GRAD",
    ]


def test_it_takes_half_of_the_memory() -> None:
    plain, small = (read_memory(trained(deep, recompute, 1, 1024)[0]).maps[0] for recompute in (False, True))
    assert small.peak < 0.5 * plain.peak


def test_operators_are_of_the_users_lines() -> None:
    main, _, _ = trained(mlp, True, steps=1)
    ops = main.global_block().ops
    (copy,) = (op for op in ops if op.output_arg_names == ["fc_0.tmp_0.subprog_0"])
    assert copy.where == ops[0].where and copy.where is not None


def test_random_numbers_are_kept() -> None:
    assert "dropout" not in repeated(trained(dropped, True, steps=1)[0])
    assert "scale" not in repeated(trained(overwritten, True, steps=1)[0])


@given(seed=st.integers(0, 400), depth=st.integers(1, 2), draw=st.randoms(use_true_random=False))
def test_loops_and_branches(seed: int, depth: int, draw: Any) -> None:
    """Random networks with random checkpoints: the same gradients."""
    gradients = []
    chosen: list[str] = []
    for recompute in (False, True):
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 7
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = layers.data("x", [WIDTH], dtype="float64")
            h = layers.fc(x, WIDTH, act="tanh", param_attr="first")
            h = layers.tanh(layers.sin(Nest(seed).build(layers.exp(layers.sin(h)), depth)))
            loss = layers.mean(layers.square(layers.sigmoid(h)))
            written = dict.fromkeys(n for op in main.desc.blocks[0].ops for n in op.output_arg_names())
            chosen = chosen or draw.sample(sorted(written), draw.randint(1, min(4, len(written))))
            pairs = fluid.backward.append_backward(loss, checkpoints=chosen if recompute else None)
        exe = fluid.Executor(fluid.CPUPlace())
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            feed = {"x": np.random.default_rng(seed).standard_normal((ROWS, WIDTH))}
            gradients.append(exe.run(main, feed=feed, fetch_list=[g for _, g in pairs]))
    for plain, again in zip(*gradients, strict=True):
        np.testing.assert_array_equal(again, plain)


def test_gradients_of_gradients() -> None:
    """The second backward sees the operators of the first as they are."""
    slopes = []
    for checkpoints in (None, ["g"]):
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
            w = layers.create_parameter([3], "float64", name="w", default_initializer=fluid.initializer.Constant(0.3))
            g = main.global_block().create_var(name="g", shape=[3], dtype="float64")
            layers.assign(layers.sin(layers.tanh(w)), g)
            loss = layers.mean(layers.exp(g))
            [(_, first)] = fluid.backward.append_backward(loss, checkpoints=checkpoints)
            [second] = fluid.gradients(first, w)
        exe = fluid.Executor(fluid.CPUPlace())
        with fluid.scope_guard(fluid.Scope()):
            fluid.global_scope().var("w").get_tensor().set(np.full(3, 0.3), fluid.CPUPlace())
            slopes.append(exe.run(main, fetch_list=[second])[0])
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-12)


def test_accumulators_and_updates_alone_are_the_wrapped_optimizers() -> None:
    loss, checkpoints = mlp()
    optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Momentum(0.1, 0.9))
    pairs = optimizer.backward(loss, checkpoints=checkpoints)
    ops = optimizer.create_optimization_pass(pairs, loss)
    assert [op.type for op in ops] == ["momentum"] * 8
    assert optimizer.get_accumulator("velocity", pairs[0][0]).shape == pairs[0][0].shape
    assert len(optimizer._accumulators["velocity"]) == 8


def test_what_is_fed_may_be_named_as_a_checkpoint() -> None:
    def build() -> Built:
        loss, checkpoints = mlp()
        return loss, [fluid.default_main_program().global_block().var("x"), *checkpoints]

    assert repeated(trained(build, True, 1)[0]) == repeated(trained(mlp, True, 1)[0])


def test_refused() -> None:
    with pytest.raises(OpTypeError, match="must be an Optimizer"):
        fluid.optimizer.RecomputeOptimizer(0.1)  # type: ignore[arg-type]
    loss, checkpoints = mlp()
    optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(OpValueError, match="has no checkpoints"):
        optimizer.minimize(loss)
    with pytest.raises(ArgumentError, match="must be a list of Variables"):
        optimizer._set_checkpoints(None)  # type: ignore[arg-type]
    optimizer._set_checkpoints([checkpoints[0], "fc_1.tmp_22"])
    with pytest.raises(OpValueError, match=r"fc_1\.tmp_22 cannot be a checkpoint"):
        optimizer.minimize(loss)
    assert fluid.default_main_program().desc.serialize_to_string() == before
    optimizer._set_checkpoints(checkpoints)
    optimizer.minimize(loss)
    assert optimizer.get_opti_var_name_list() == ["learning_rate_0"]
    rate = optimizer.global_learning_rate()
    assert rate is not None and rate.name == "learning_rate_0"
    assert repr(optimizer) == "RecomputeOptimizer(optimizer=SGDOptimizer(learning_rate=0.1))"
