"""Batches of texts whose LoDs all differ: bound bodies of loops are kept, and used for the next batch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.runtime.compile import lowering as plans
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.program_state import program_state

L = fluid.layers
#: Lengths of three sequences: more different LoDs than a plan keeps entries here, over no more than three rows a step.
LENGTHS = list(product((1, 2), repeat=3))
KEPT = 3


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plans, "_MOST_SPECIALIZATIONS", KEPT - 1)
    with fluid.fresh():
        yield


@pytest.fixture
def total() -> Any:
    """The loss of a sum over each sequence, and its gradient."""
    words = L.data("words", [2], lod_level=1, stop_gradient=False)
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(words)
        memory = rnn.memory(shape=[2], value=0.0)
        state = L.elementwise_add(L.square(word), memory)
        rnn.update_memory(memory, state)
        rnn.output(state)
    loss = L.mean(L.sequence_pool(rnn(), "last"))
    return [loss, *fluid.gradients([loss], [words])]


def run_all(fetch: list[Any], lengths: list[tuple[int, ...]] = LENGTHS) -> LoweredProgram:
    """Run over batches of these lengths, compare with numpy, and give the plan."""
    exe = fluid.Executor(fluid.CPUPlace())
    for row in lengths:
        words = np.arange(2 * sum(row), dtype="float32").reshape(-1, 2)
        batch = fluid.create_lod_tensor(words, [list(row)], fluid.CPUPlace())
        loss, slope = exe.run(feed={"words": batch}, fetch_list=fetch, return_numpy=False)
        np.testing.assert_allclose(np.array(loss), [np.square(words).sum() / 6], rtol=1e-6)
        np.testing.assert_allclose(np.array(slope), words / 3, rtol=1e-6)
    (lowered,) = program_state(fluid.default_main_program().desc).lowered_programs.values()
    return lowered  # type: ignore[no-any-return]


def test_bodies_stay_bound_when_entries_go(total: list[Any]) -> None:
    lowered = run_all(total)
    bodies, entries = len(lowered.bodies), len(lowered.specializations)
    assert (entries, lowered.evicted) == (KEPT, len(LENGTHS) - KEPT)
    again = run_all(total)  # every entry is bound anew, for they do not fit
    assert again is lowered
    assert (len(lowered.bodies), len(lowered.specializations)) == (bodies, entries)


def test_what_was_used_last_stays(total: list[Any]) -> None:
    often, *others = LENGTHS
    lowered = run_all(total, [often])
    (entry,) = lowered.specializations.values()
    for row in others:
        run_all(total, [row, often])
    assert lowered.evicted
    assert any(kept is entry for kept in lowered.specializations.values())


@pytest.mark.parametrize(("limit", "value"), [("_MOST_BYTES", 100), ("_MOST_EVICTED", 2), ("_MOST_SEGMENTS", 20)])
def test_a_plan_that_holds_much_starts_afresh(
    total: list[Any], monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    started: list[int] = []
    forget = LoweredProgram.forget
    monkeypatch.setattr(plans, limit, value)
    monkeypatch.setattr(LoweredProgram, "forget", lambda self: (started.append(1), forget(self))[1])
    lowered = run_all(total)
    assert 1 < len(started) < len(LENGTHS)  # the first one is the plan's own
    assert lowered.evicted <= 3


def test_few_entries_are_kept_whatever_they_hold(total: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_MOST_BYTES", 0)
    lowered = run_all(total, LENGTHS[:KEPT])
    assert len(lowered.specializations) == KEPT


def test_large_entries_go_but_a_few(total: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_FEW_SPECIALIZATIONS", 1)
    monkeypatch.setattr(plans, "_MOST_IN_ALL", 0)
    lowered = run_all(total, LENGTHS[:KEPT])
    assert all(entry.bound.arena_bytes for entry in lowered.specializations.values())
    assert (len(lowered.specializations), lowered.evicted) == (2, KEPT - 2)
