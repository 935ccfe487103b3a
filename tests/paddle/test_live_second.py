"""Gradients of our gradients, run by us and by real Paddle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from tests.backward.test_second import CONVOLUTIONS, FUNCTIONS, NORMS, PAIRS, POOLS
from tests.paddle.harness import require_paddle
from tests.paddle.test_sweep import in_paddle, run

pytestmark = pytest.mark.paddle

L = fluid.layers
#: What Paddle 2.6.2 differentiates once only on this place, has in newer forms, or ends its process with.
NOT_THERE = {
    "exp", "mean", "transpose", "reshape", "expand", "sums", "bmm", "depthwise_conv2d", "conv2d_transpose",
    "depthwise_conv2d_transpose", "conv3d_transpose", "reciprocal", "relu6", "hard_sigmoid", "brelu", "layer_norm",
    "layer_norm_factors", "instance_norm", "max", "max_overlapping", "max_global", "max_adaptive", "volume",
    "batch_norm_running", "abs", "concat_with_a_constant",
}  # fmt: skip


def twice(build: Any, *arrays: np.ndarray) -> tuple[Any, dict[str, Any], list[str]]:
    """A program with the gradients of weighted gradients: program, feeds, names to fetch."""
    with fluid.fresh():
        inputs = [L.data(f"v{i}", a.shape, append_batch_size=False, dtype="float64") for i, a in enumerate(arrays)]
        for v in inputs:
            v.stop_gradient = False
        first = fluid.gradients(build(*inputs), inputs)
        weights = [L.data(f"c{i}", a.shape, append_batch_size=False, dtype="float64") for i, a in enumerate(arrays)]
        second = fluid.gradients(first, inputs, weights)
        rng = np.random.default_rng(4)
        feed = {f"v{i}": a for i, a in enumerate(arrays)} | {
            f"c{i}": rng.uniform(-1, 1, a.shape) for i, a in enumerate(arrays)
        }
        return fluid.default_main_program(), feed, [g.name for g in second]


def test_paddle_runs_our_gradients_of_gradients(tmp_path: Path) -> None:
    require_paddle()
    cases = {n: c for n, c in {**FUNCTIONS, **PAIRS, **CONVOLUTIONS, **POOLS, **NORMS}.items() if n not in NOT_THERE}
    built = {name: twice(*case) for name, case in cases.items()}
    wrong = []
    for (name, case), theirs in zip(built.items(), in_paddle(tmp_path, list(built.values())), strict=True):
        if isinstance(theirs, str):
            wrong.append(f"{name}: Paddle refuses: {[t for t in theirs.splitlines() if 'rror' in t][-1:]}")
            continue
        for mine, other in zip(run(*case), theirs, strict=True):
            if not np.allclose(np.asarray(mine), np.asarray(other), 1e-7, 1e-9):
                wrong.append(f"{name}: off by {abs(np.asarray(mine) - np.asarray(other)).max():.1e}")
    assert not wrong, "\n".join(wrong)
    assert len(built) >= 48
