"""oneDNN under hostile attributes and shapes, in guarded memory; see `tests.fuzz.memory_safety`."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.core import VarDesc
from fluidnb_kernels.onednn.library import Call
from tests.fuzz import memory_safety
from tests.fuzz.memory_safety import WRONG, Maker, outcomes
from tests.fuzz.mutate import Victim
from tests.tools.sampling import takes_all

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

KINDS = (
    "conv2d", "depthwise_conv2d", "conv3d", "conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose",
    "pool2d", "pool3d",
)  # fmt: skip


def in_float32(maker: Maker) -> Victim:
    """A program that oneDNN can compute."""
    made = maker()
    for block in made.program.desc.blocks:
        for var in block.vars.values():
            if var.type() == VarDesc.VarType.LOD_TENSOR and var.dtype() == VarDesc.VarType.FP64:
                var.set_dtype(VarDesc.VarType.FP32)

    def narrow(value: Any) -> Any:
        array = np.asarray(value)
        return array.astype(np.float32) if array.dtype == np.float64 else value

    return Victim(made.program, {n: narrow(v) for n, v in made.feed.items()}, made.fetch, made.held)


@pytest.mark.parametrize("kind", KINDS)
def test_no_operator_leaves_its_memory(kind: str) -> None:
    rows = memory_safety.known()[kind]
    dice = random.Random(kind)
    jobs = []
    for _ in range(400 if takes_all() else 10):
        name, maker = dice.choice(rows)
        jobs.append((name, partial(in_float32, maker), dice.randrange(1 << 40)))
    assert [row for row in outcomes(jobs) if row[0] in WRONG] == []


@pytest.mark.parametrize("kind", KINDS)
def test_such_programs_are_computed_by_onednn(kind: str) -> None:
    exe, found = fluid.Executor(), 0
    for _, maker in memory_safety.known()[kind]:
        made, scope = in_float32(maker), fluid.Scope()
        exe.run(made.program, feed=made.feed, fetch_list=made.fetch, scope=scope)
        hot: Any = exe._hot
        found += any(isinstance(function, Call) for function, _ in hot.root.code.plain.calls)
    assert found
