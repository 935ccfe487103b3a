"""Inference models with loops, branches and recurrent networks that fluidnb saves run in real PaddlePaddle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from tests.paddle import fluidnb_side as ours
from tests.paddle.harness import require_paddle, train_in_paddle
from tests.paddle.programs_control_flow import PROGRAMS, SHAPE

pytestmark = pytest.mark.paddle


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_paddle_computes_the_same(build: Callable[[], Any], tmp_path: Path, rng: np.random.Generator) -> None:
    require_paddle()
    score = fluid.layers.mean(build())
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.square(score))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": rng.standard_normal(SHAPE, np.float32)})
    fluid.memory_optimize(fluid.default_main_program(), skip_opt_set=[score])
    fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [score], exe)
    feeds = {f"{step}/x": rng.standard_normal(SHAPE, np.float32) for step in range(3)}
    with fluid.scope_guard(fluid.Scope()):
        program, names, (target,) = fluid.io.load_inference_model(str(tmp_path / "model"), exe)
        params = ours.persistables(program, fluid.global_scope())
    assert names == ["x"] and params
    mine, _ = ours.train(program, params, feeds, target.name)
    (tmp_path / "job").mkdir()
    data = (tmp_path / "model" / "__model__").read_bytes()
    theirs = train_in_paddle(tmp_path / "job", data, params, feeds, [target.name])
    np.testing.assert_allclose(mine, theirs.losses, rtol=2e-6, atol=1e-7)
    assert len(set(mine)) == 3
