"""Recorded cases of real PaddlePaddle on CUDAPlace: each feed from either side, both walkers, the closed list."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.op import get_op
from fluidnb.runtime.program_state import program_state
from fluidnb.testing.compare import assert_same
from tests.ops.goldens import cases
from tests.tools.sampling import sample

CASES = {case.id: case for case in cases()}


def _on_the_host(program: fluid.Program) -> set[str]:
    """The operators of a program's last run whose operands went to the host and back."""
    lowered = next(reversed(program_state(program.desc).lowered_programs.values()))
    blocks = lowered.desc.blocks
    return {blocks[b].ops[i].optype for (b, i), notes in lowered.notes.items() if "place cuda -> cpu" in notes}


@pytest.mark.parametrize("id", sample(list(CASES), 20))
def test_the_recorded_program(id: str, cuda: fluid.CUDAPlace) -> None:
    case = CASES[id]
    program = fluid.Program.parse_from_string(case.program)
    names = [f["var"] for f in case.fetches]
    exe, scope = fluid.Executor(cuda), fluid.Scope()
    runs = [
        exe.run(program, feed=case.feed(place), fetch_list=names, scope=scope, return_numpy=False, keep_scopes=keep)
        for place, keep in ((cuda, False), (fluid.CPUPlace(), False), (cuda, True))
    ]
    for row, value in zip(case.fetches, runs[0], strict=True):
        case.compare(value, row)
    for how, values in zip(("again", "by the machine"), runs[1:], strict=True):
        assert_same(dict(zip(names, runs[0], strict=True)), dict(zip(names, values, strict=True)), how)
    assert all(get_op(type).host_only for type in _on_the_host(program))


def test_operators_of_the_host_see_values_there_in_each_run(cuda: fluid.CUDAPlace) -> None:
    x = layers.data("x", shape=[3], dtype="int64", append_batch_size=False)
    block = fluid.default_main_program().global_block()
    out, index = (block.create_var(name=name, dtype="int64", shape=[-1]) for name in ("out", "index"))
    block.append_op("unique", {"X": [x]}, {"Out": [out], "Index": [index]}, {"dtype": "int64"})
    exe = fluid.Executor(cuda)
    for numbers, want in (([5, 2, 5], [5, 2]), ([1, 1, 1], [1]), ([1, 2, 3], [1, 2, 3]), ([7, 7, 3], [7, 3])):
        values, places = exe.run(feed={"x": np.array(numbers)}, fetch_list=[out, index])
        np.testing.assert_array_equal(values, want)
        np.testing.assert_array_equal(values[places], numbers)


@pytest.mark.parametrize("id", ["max_pool2d_with_index/f64", "max_pool3d_with_index/f64", "roi_pool/a"])
def test_integers_that_come_first_keep_no_gradient_on_the_host(id: str, cuda: fluid.CUDAPlace) -> None:
    program = fluid.Program.parse_from_string(CASES[id].program)
    names = [f["var"] for f in CASES[id].fetches]
    fluid.Executor(cuda).run(program, feed=CASES[id].feed(), fetch_list=names, return_numpy=False)
    assert _on_the_host(program) == set()
