"""Loops and branches built by fluidnb run in real PaddlePaddle with the same values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from tests.layers.nests import ROWS, WIDTH, Nest
from tests.paddle import fluidnb_side as ours
from tests.paddle.harness import require_paddle, train_in_paddle
from tests.paddle.programs_control_flow import PROGRAMS, SHAPE, trained
from tests.tools.sampling import sample

pytestmark = pytest.mark.paddle

#: The learning rate of random networks.
RATE = 0.1


def powers(limit: float) -> tuple[fluid.Program, str]:
    """A program that doubles the sum of its input until it exceeds a limit."""
    main = fluid.Program()
    with fluid.program_guard(main):
        x = layers.data("x", shape=[3])
        total = layers.reshape(layers.reduce_sum(x), [1])
        bound = layers.fill_constant([1], "float32", limit)
        below = layers.less_than(total, bound)
        with layers.While(below).block():
            layers.assign(layers.scale(total, 2.0), total)
            layers.less_than(total, bound, cond=below)
    return main, total.name


def magnitude() -> tuple[fluid.Program, str]:
    """A program that gives the sum of its input, with its sign turned when it is below zero."""
    main = fluid.Program()
    with fluid.program_guard(main):
        x = layers.data("x", shape=[3])
        total = layers.reshape(layers.reduce_sum(x), [1])
        out = layers.fill_constant([1], "float32", 0)
        zero = layers.fill_constant([1], "float32", 0)
        for condition, factor in ((layers.less_than(total, zero), -1.0), (layers.less_equal(zero, total), 1.0)):
            with layers.ConditionalBlock([condition], is_scalar_condition=True).block():
                layers.assign(layers.scale(total, factor), out)
    return main, out.name


@pytest.mark.parametrize("build", [lambda: powers(100.0), magnitude], ids=["while", "conditional_block"])
def test_control_flow_agrees(build, tmp_path: Path, rng: np.random.Generator) -> None:
    require_paddle()
    program, name = build()
    feeds = {f"{step}/x": rng.standard_normal((1 + step % 3, 3), np.float32) for step in range(8)}
    if build is not magnitude:
        feeds = {key: np.abs(array) for key, array in feeds.items()}
    mine, _ = ours.train(program, {}, feeds, name)
    theirs = train_in_paddle(tmp_path, program.desc.serialize_to_string(), {}, feeds, [name])
    np.testing.assert_allclose(mine, theirs.losses, rtol=1e-5)
    assert len(set(mine)) == 8 and (mine >= (0 if build is magnitude else 100)).all()


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_training_through_control_flow_agrees(build, tmp_path: Path, rng: np.random.Generator) -> None:
    """Our backward of loops, branches and recurrent networks, run by Paddle: the same losses and parameters."""
    require_paddle()
    main, startup, loss = trained(build)
    feeds = {f"{step}/x": rng.standard_normal(SHAPE, np.float32) for step in range(5)}
    feeds["1/x"], feeds["3/x"] = np.abs(feeds["1/x"]), -np.abs(feeds["3/x"])  # a side is empty that was not before
    params = ours.initial(main, startup)
    mine, after = ours.train(main, params, feeds, loss)
    theirs = train_in_paddle(tmp_path, main.desc.serialize_to_string(), params, feeds, [loss])
    np.testing.assert_allclose(mine, theirs.losses, rtol=1e-4, atol=1e-6)
    for name, value in after.items():
        np.testing.assert_allclose(value, theirs.after[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert any(np.abs(after[n] - params[n]).max() > 1e-3 for n in params)


def branch_inside(program: fluid.Program, kinds: tuple[str, ...]) -> bool:
    """Whether a branch stands in a block of such operators, at any depth: there Paddle's gradients are not all ours."""
    around = {
        op.attrs["sub_block"]: (block.idx, op.optype)
        for block in program.desc.blocks
        for op in block.ops
        if op.optype in ("while", "conditional_block", "recurrent")
    }
    for index, (outer, kind) in around.items():
        while kind == "conditional_block" and outer in around:
            outer, above = around[outer]
            if above in kinds:
                return True
        assert index > outer
    return False


def network(seed: int) -> tuple[fluid.Program, fluid.Program, fluid.framework.Variable]:
    """A random network without branches in loops, its startup program and its loss."""
    while True:
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = seed + 1
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = layers.data("x", shape=[WIDTH], dtype="float64")
            x.stop_gradient = False  # Paddle's recurrent_grad knows no sequence without gradient
            before = layers.fc(x, WIDTH, act="tanh", param_attr="first")
            loss = layers.mean(layers.square(Nest(seed).build(before, 2 + seed % 2)))
            if not branch_inside(main, ("while",)):
                fluid.optimizer.SGD(RATE).minimize(loss)
                return main, startup, loss
        seed += 200


@pytest.mark.parametrize("seed", sample(range(200), 3))
def test_a_random_network_agrees(seed, tmp_path: Path) -> None:
    """One step of training, in float64. Paddle's later steps may see what a block that is skipped has left."""
    require_paddle()
    main, startup, loss = network(seed)
    feeds = {"0/x": np.random.default_rng(seed).standard_normal((ROWS, WIDTH))}
    params = ours.initial(main, startup)
    mine, after = ours.train(main, params, feeds, loss.name)
    theirs = train_in_paddle(tmp_path, main.desc.serialize_to_string(), params, feeds, [loss.name])
    np.testing.assert_allclose(mine, theirs.losses, rtol=1e-12)
    if branch_inside(main, ("recurrent",)) and not all(np.allclose(after[n], theirs.after[n], 1e-12) for n in after):
        # Paddle reads gradients that an earlier step has left where a step skips a block: central differences decide.
        slopes = numeric_slopes(lambda values: ours.train(main, values, feeds, loss.name)[0].item(), params)
        for name, value in after.items():
            np.testing.assert_allclose((params[name] - value) / RATE, slopes[name], rtol=1e-6, atol=1e-8, err_msg=name)
        return
    for name, value in after.items():
        np.testing.assert_allclose(value, theirs.after[name], rtol=1e-12, atol=1e-14, err_msg=name)


def numeric_slopes(loss: Callable[[dict[str, np.ndarray]], float], params: dict[str, np.ndarray]) -> Any:
    """The gradient of a loss by central differences."""
    slopes = {name: np.zeros_like(value) for name, value in params.items()}
    for name, value in params.items():
        for i in np.ndindex(value.shape):
            ends = [value.copy(), value.copy()]
            ends[0][i] += 1e-6
            ends[1][i] -= 1e-6
            above, below = (loss({**params, name: end}) for end in ends)
            slopes[name][i] = (above - below) / 2e-6
    return slopes
