"""Programs of fluidnb run in real PaddlePaddle, programs of Paddle run in fluidnb: same losses for 20 steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from tests.paddle import fluidnb_side as ours
from tests.paddle.harness import Arrays, build_in_paddle, require_paddle, train_in_paddle
from tests.paddle.spec import NAMED, feeds, random_spec
from tests.tools.sampling import SEED, sample

RANDOM = {f"random{i}": random_spec(np.random.default_rng([SEED, i])) for i in range(100)}
SPECS = NAMED | {name: RANDOM[name] for name in sample(list(RANDOM), 4)}

pytestmark = pytest.mark.paddle
each_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())


def assert_same(mine: Arrays, theirs: Arrays) -> None:
    """Parameters and optimizer state agree, whatever the shape of a scalar."""
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        assert array.dtype == theirs[name].dtype, name
        np.testing.assert_allclose(array.ravel(), theirs[name].ravel(), 2e-4, 2e-5, err_msg=name)


@each_spec
def test_our_program_in_paddle(spec: dict[str, Any], tmp_path: Path) -> None:
    require_paddle()
    program, startup, loss = ours.build(spec)
    params, batches = ours.initial(program, startup), feeds(spec)
    losses, after = ours.train(program, params, batches, loss)
    theirs = train_in_paddle(tmp_path, program.desc.serialize_to_string(), params, batches, [loss])
    np.testing.assert_allclose(losses, theirs.losses, rtol=1e-4, atol=1e-6)
    assert_same(after, theirs.after)
    assert len(losses) == 20 and not np.allclose(losses[0], losses[1:], rtol=1e-6)


@each_spec
def test_paddles_program_here(spec: dict[str, Any], tmp_path: Path) -> None:
    require_paddle()
    batches = feeds(spec)
    theirs = build_in_paddle(tmp_path, spec, batches)
    program = fluid.Program.parse_from_string(theirs.program)
    assert program.desc.serialize_to_string() == theirs.program
    losses, after = ours.train(program, theirs.params, batches, theirs.fetch[0])
    np.testing.assert_allclose(losses, theirs.losses, rtol=1e-4, atol=1e-6)
    assert_same(after, theirs.after)


def test_paddles_startup_program_here(tmp_path: Path) -> None:
    require_paddle()
    theirs = build_in_paddle(tmp_path, NAMED["digits_adam"], feeds(NAMED["digits_adam"], steps=1))
    assert theirs.startup is not None
    program = fluid.Program.parse_from_string(theirs.program)
    mine = ours.initial(program, fluid.Program.parse_from_string(theirs.startup))
    assert mine.keys() == theirs.params.keys()
    for name, array in theirs.params.items():
        assert mine[name].size == array.size and mine[name].dtype == array.dtype, name
        if array.std() == 0:  # filled with a constant, not drawn
            np.testing.assert_array_equal(mine[name].ravel(), array.ravel(), err_msg=name)
        else:
            assert 0.8 < mine[name].std() / array.std() < 1.25, name
