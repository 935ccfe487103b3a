"""Steps of optimizers are bound once for feeds of all shapes, and compute what they compute bound with the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.runtime.compile import lowering
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.replay import size_templates
from tests.runtime.many_shapes import NETWORKS, OPTIMIZERS, L, dense, results, rows, train, values


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with fluid.fresh():
        yield


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("network", NETWORKS)
def test_the_same_bits(network: str, optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = results(network, optimizer, fluid.CPUPlace())
    monkeypatch.setattr(lowering, "_MANY_SHAPES", 1 << 30)
    assert apart == results(network, optimizer, fluid.CPUPlace())


def lowered() -> LoweredProgram:
    (one,) = program_state(fluid.default_main_program().desc).lowered_programs.values()
    return one  # type: ignore[no-any-return]


@pytest.mark.parametrize("network", ["batches", "texts"])
def test_updates_are_bound_once_for_all_shapes(
    network: str, bound: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(size_templates, "_FAILURES", 0)
    build, feed = NETWORKS[network]
    loss = train(build(), fluid.optimizer.Adam(0.1))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for count in range(1, 11):
        exe.run(feed=feed(count), fetch_list=[loss])
    parameters = len(fluid.default_main_program().all_parameters())
    trained = sum(p.trainable for p in fluid.default_main_program().all_parameters())
    assert parameters >= trained > 3
    assert bound["mean"] == 10
    assert bound["adam"] == (lowering._MANY_SHAPES + 1) * trained
    assert len(lowered().updates) == 1


def test_each_scope_has_its_own(bound: Counter[str]) -> None:
    loss = train(dense(), fluid.optimizer.SGD(0.1))
    exe = fluid.Executor()
    ends = []
    for _ in range(2):
        with fluid.scope_guard(fluid.Scope()):
            exe.run(fluid.default_startup_program())
            for count in range(1, 8):
                exe.run(feed=rows(count), fetch_list=[loss])
            ends.append(values())
    assert ends[0] == ends[1]
    assert len(lowered().updates) == 2


def test_scopes_that_are_gone_are_released() -> None:
    loss = train(dense(), fluid.optimizer.SGD(0.1))
    exe = fluid.Executor()
    for _ in range(2 * 4):
        with fluid.scope_guard(fluid.Scope()):
            exe.run(fluid.default_startup_program())
            exe.run(feed=rows(3), fetch_list=[loss])
    assert 0 < len(lowered().updates) <= 4


def test_a_parameter_that_the_user_replaces_is_updated() -> None:
    loss = train(dense(), fluid.optimizer.SGD(0.1))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    name = fluid.default_main_program().all_parameters()[0].name
    for count in range(1, 7):
        exe.run(feed=rows(count), fetch_list=[loss])
    tensor = fluid.global_scope().find_var(name).get_tensor()
    for count in (3, 9):
        tensor.set(np.full((6, 8), 0.5, "float32"), fluid.CPUPlace())
        exe.run(feed=rows(count), fetch_list=[loss])
        changed = np.array(tensor) - np.float32(0.5)
        assert 0 < np.abs(changed).max() < 0.2


def test_a_refused_update_changes_nothing() -> None:
    loss = train(dense(), fluid.optimizer.SGD(0.1))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for count in range(1, 4):
        exe.run(feed=rows(count), fetch_list=[loss])
    rate = next(op for op in fluid.default_main_program().global_block().ops if op.type == "sgd").input("LearningRate")
    tensor = fluid.global_scope().find_var(rate[0]).get_tensor()
    before = values()
    tensor.set(np.ones(2, "float32"), fluid.CPUPlace())
    wrong = values()
    with pytest.raises(FluidError, match="LearningRate"):
        exe.run(feed=rows(7), fetch_list=[loss])
    assert values() == wrong
    tensor.set(np.frombuffer(before[rate[0]], "float32"), fluid.CPUPlace())
    exe.run(feed=rows(7), fetch_list=[loss])
    assert values() != before


def test_gradients_are_in_memory_once() -> None:
    loss = train(L.fc(L.data("x", [6]), 4000), fluid.optimizer.SGD(0.1))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for count in range(1, 20):
        exe.run(feed=rows(count), fetch_list=[loss])
    parameters = 4 * sum(int(np.prod(p.shape)) for p in fluid.default_main_program().all_parameters())
    apart = list(lowered().specializations.values())[lowering._MANY_SHAPES :]
    assert all(one.bound.arena_bytes < 5 * 4 * 4000 * 19 for one in apart)
    assert lowered().bytes < 2 * parameters
