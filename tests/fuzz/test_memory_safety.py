"""No operator reads or writes outside of its memory: what `make fuzz` found before, and that it finds such things."""

from __future__ import annotations

import mmap
from functools import partial
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.op import Binder, op, remove_op
from tests.fuzz import memory_safety
from tests.fuzz.memory_safety import WRONG, outcomes
from tests.fuzz.mutate import Victim

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

#: What was found before, by case and seed.
FOUND = [
    ("argsort[3x5d]axis=1,descending=False", 606251515232),
    ("tests.ops.test_diagonals.TestTrace", 482360128696),
    ("lstm[6x12f[[2, 3, 1]],3x12f,1x21f]cell_activation=tanh,candidate_activation=tanh", 846562091622),
]


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_what_was_found(name: str, seed: int) -> None:
    makers = {n: maker for rows in memory_safety.makers().values() for n, maker in rows}
    assert [row for row in outcomes([(name, makers[name], seed)]) if row[0] in WRONG] == []


def _large() -> Victim:
    with fluid.fresh():
        out = fluid.layers.fill_constant([1 << 25], "float32", 3)
        return Victim(fluid.default_main_program(), {}, [fluid.layers.reduce_sum(out).name])


def test_what_the_process_before_addresses_is_not_counted() -> None:
    with mmap.mmap(-1, memory_safety.BYTES):  # pages that nobody touches take no memory
        assert [row[0] for row in outcomes([("large", _large, None)])] == ["result"]


def _nothing(b: Binder) -> None:
    """A kernel that writes nothing."""


def _beside(b: Binder) -> None:
    b(_write_behind, b["Out"])


def _write_behind(out: Any) -> None:
    np.lib.stride_tricks.as_strided(out, (out.size + 1,), (out.itemsize,))[...] = 0


def _far(b: Binder) -> None:
    b(_read_far, b["X"], b["Out"])


def _read_far(x: Any, out: Any) -> None:
    out[...] = np.lib.stride_tricks.as_strided(x, (1 << 40,), (x.itemsize,)).sum()


def _program() -> Victim:
    with fluid.fresh():
        x = fluid.layers.data("x", [4], append_batch_size=False)
        block = fluid.default_main_program().global_block()
        out = block.create_var(name="out", dtype="float32")
        block.append_op("broken", {"X": [x]}, {"Out": [out]})
        return Victim(fluid.default_main_program(), {"x": np.ones(4, "float32")}, ["out"])


@pytest.mark.parametrize(("kernel", "outcome"), [(_nothing, "poison"), (_beside, "canary"), (_far, "died")])
def test_the_harness_sees(kernel: Any, outcome: str) -> None:
    op("broken", inputs={"X": "x"}, outputs={"Out": "y"}, infer=lambda c: c.set("Out", c["X"].shape, "float32"))(kernel)
    try:
        assert [row[0] for row in outcomes([("broken", partial(_program), None)])] == [outcome]
    finally:
        remove_op("broken")
