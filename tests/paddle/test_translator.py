"""A decoder with attention and beam search that fluidnb has trained and saved: real Paddle finds the same sentences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from tests.paddle.harness import in_paddle, load, require_paddle
from tests.runtime import translator

pytestmark = pytest.mark.paddle


@pytest.mark.parametrize("steps", [0, 60], ids=["untrained", "trained"])
def test_paddle_decodes_the_same(steps: int, tmp_path: Path) -> None:
    require_paddle()
    exe = fluid.Executor(fluid.CPUPlace())
    loss = translator.training()
    fluid.default_startup_program().random_seed = 5
    exe.run(fluid.default_startup_program())
    lesson = translator.lesson()
    for _ in range(steps):
        exe.run(feed=lesson, fetch_list=[loss])
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        targets = list(translator.search())
    fluid.io.save_inference_model(str(tmp_path / "model"), ["source", "begin", "score"], targets, exe, program)

    question = translator.question(translator.SENTENCES)
    mine = exe.run(program, feed=question, fetch_list=targets, return_numpy=False)
    np.savez(tmp_path / "feeds.npz", **{name: np.asarray(tensor) for name, tensor in question.items()})
    lengths = {name: tensor.recursive_sequence_lengths() for name, tensor in question.items()}
    (tmp_path / "lengths.json").write_text(json.dumps(lengths))
    in_paddle("paddle_decode", tmp_path)

    theirs, lods = load(tmp_path / "out.npz"), json.loads((tmp_path / "lods.json").read_text())
    for k, tensor in enumerate(mine):
        assert [list(level) for level in tensor.lod()] == lods[k]
    np.testing.assert_array_equal(np.asarray(mine[0]).ravel(), theirs["0"].ravel())
    np.testing.assert_allclose(np.asarray(mine[1]).ravel(), theirs["1"].ravel(), rtol=1e-4, atol=1e-5)
