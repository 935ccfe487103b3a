"""Random nested programs with backward, built by fluidnb, give the same losses and gradients in real PaddlePaddle.

Paddle keeps only the last value of what a loop carries in a tensor, so these programs carry values in arrays. It leaves
gradients empty where a loop has run no iteration, so every loop runs at least one; and it stops where no gradient
arrives at an element of an array that another one follows, or at what was computed from one, so such programs are drawn
again. (What fluidnb makes of them is held against central differences in tests/fuzz.)
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.backward import append_backward
from tests.fuzz.nests import COUNTS, Nest, feed, weights
from tests.paddle.harness import load, require_paddle, train_in_paddle
from tests.tools.sampling import SEED, sample

pytestmark = [pytest.mark.paddle, pytest.mark.slow]

STEPS, PATIENCE = 3, 4


def compared(seed: int, folder: Path) -> bool:
    """Compare one program; False when Paddle cannot run it."""
    nest = Nest(random.Random(seed).randrange, array_style=True, random=False)
    with fluid.fresh():
        program, loss = nest.build()
        pairs = append_backward(loss)
    fetch = [loss.name, "x@GRAD", *(g.name for _, g in pairs)]
    rng = np.random.default_rng(seed)
    parameters, feeds = weights(rng), [feed(rng) for _ in range(STEPS)]
    for given in feeds:
        given.update({n: np.maximum(given[n], 1) for n in COUNTS})
    named = {f"{step}/{name}": array for step, given in enumerate(feeds) for name, array in given.items()}
    folder.mkdir()
    try:
        train_in_paddle(folder, program.desc.serialize_to_string(), parameters, named, fetch)
    except AssertionError as e:
        if "Tensor holds no memory" in str(e):
            return False
        raise
    theirs, scope = load(folder / "out.npz"), fluid.Scope()
    for name, array in parameters.items():
        scope.var(name).get_tensor().set(array, fluid.CPUPlace())
    for step, given in enumerate(feeds):
        mine = fluid.Executor(fluid.CPUPlace()).run(program, feed=given, fetch_list=fetch, scope=scope)
        for name, array in zip(fetch, mine, strict=True):
            np.testing.assert_allclose(
                array, theirs[f"{step}/{name}"], rtol=1e-9, atol=1e-12, err_msg=f"{name}\n" + "\n".join(nest.text)
            )
    return True


@pytest.mark.parametrize("case", sample(range(40), 3))
def test_nested_programs_agree(case: int, tmp_path: Path) -> None:
    require_paddle()
    seeds = [SEED + PATIENCE * case + k for k in range(PATIENCE)]
    assert any(compared(seed, tmp_path / str(seed)) for seed in seeds)
