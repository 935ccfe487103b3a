"""Programs that memory_optimize or recomputation has rewritten run in real PaddlePaddle too, with the same values.

Fluid's executor knows delete_var. The one that Paddle 2.6.2 uses inside while and conditional_block does not: there it
is taken out before Paddle gets the program, and what is left is that variables share memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from tests.paddle import fluidnb_side as ours
from tests.paddle.harness import require_paddle, train_in_paddle
from tests.paddle.programs_control_flow import PROGRAMS, SHAPE, static_rnn, trained

pytestmark = pytest.mark.paddle


def deep() -> Any:
    """A network that is deep enough for memory to be shared."""
    h = fluid.layers.data("x", shape=list(SHAPE), append_batch_size=False)
    for act in ("tanh", "sigmoid", "relu", "tanh"):
        h = fluid.layers.fc(h, 4, act=act)
    return h


@pytest.mark.parametrize(("build", "level"), [(deep, 0), *((build, 1) for build in (deep, *PROGRAMS))])
def test_training_agrees(build: Callable[[], Any], level: int, tmp_path: Path, rng: np.random.Generator) -> None:
    require_paddle()
    main, startup, loss = trained(build)
    feeds = {f"{step}/x": rng.standard_normal(SHAPE, np.float32) for step in range(4)}
    params = ours.initial(main, startup)
    plain, after = ours.train(main, params, feeds, loss)
    fluid.memory_optimize(main, level=level, skip_grads=False)
    drops = [op for block in main.blocks for op in block.ops if op.type == "delete_var"]
    assert drops and (build is not deep or any(len(op.input("X")) > 1 for op in drops))
    mine, mine_after = ours.train(main, params, feeds, loss)
    assert mine.tobytes() == plain.tobytes()
    assert {n: a.tobytes() for n, a in mine_after.items()} == {n: a.tobytes() for n, a in after.items()}
    if build is not static_rnn:
        for block in main.blocks[1:]:
            for index in reversed([i for i, op in enumerate(block.ops) if op.type == "delete_var"]):
                block.remove_op(index)
    theirs = train_in_paddle(tmp_path, main.desc.serialize_to_string(), params, feeds, [loss], classic=True)
    np.testing.assert_allclose(mine, theirs.losses, rtol=1e-4)
    for name, value in after.items():
        np.testing.assert_allclose(value, theirs.after[name], rtol=1e-3, atol=1e-5, err_msg=name)


def test_recomputation_agrees(tmp_path: Path, rng: np.random.Generator) -> None:
    require_paddle()
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        h, found = fluid.layers.data("x", shape=list(SHAPE), append_batch_size=False), []
        for act in ("tanh", "sigmoid", "relu", "tanh"):
            h = fluid.layers.batch_norm(fluid.layers.fc(h, 4, act=act))
            found.append(h)
        loss = fluid.layers.mean(fluid.layers.square(h))
        optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Momentum(0.05, 0.9))
        optimizer._set_checkpoints(found[1:])
        optimizer.minimize(loss)
    feeds = {f"{step}/x": rng.standard_normal(SHAPE, np.float32) for step in range(4)}
    params = ours.initial(main, startup)
    mine, after = ours.train(main, params, feeds, loss.name)
    theirs = train_in_paddle(tmp_path, main.desc.serialize_to_string(), params, feeds, [loss.name])
    np.testing.assert_allclose(mine, theirs.losses, rtol=1e-4)
    for name, value in after.items():
        np.testing.assert_allclose(value, theirs.after[name], rtol=1e-3, atol=1e-5, err_msg=name)
