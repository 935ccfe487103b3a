"""Trainers that join and leave between two steps: the numbers stay those of one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.distributed import LocalEngine, RayEngine, split_batches
from fluidnb.distributed.roles import TrainerRole
from fluidnb.distributed.shard import Rejoin
from fluidnb.errors import FluidError
from fluidnb.op import engine
from fluidnb.op.engine import detach
from tests.distributed.networks import (
    batches,
    built,
    collective,
    divided,
    fit_a_line,
    lenet,
    one_process,
    shared_table,
    word2vec,
)

#: step -> how many trainers there are after it
CHANGES = {1: 3, 4: 1, 7: 4}


def adam() -> Any:
    return fluid.optimizer.Adam(0.01)


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def schedule() -> Any:
    return fluid.optimizer.Momentum(layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01]), 0.9)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    yield
    assert not [t.name for t in threading.enumerate() if t.name.startswith("fluidnb ")]


def trained(divide: Any, network: Any, optimizer: Any, feeds: Any, changes: dict[int, int]) -> tuple[Any, Any]:
    """Fetched losses of all trainers, and the parameters, with changes of the number of trainers."""
    parts = built(network, optimizer)
    with LocalEngine(divide(parts)) as engine:

        def report(trainer: int, step: int, values: list[Any]) -> None:
            if trainer == 0 and step in changes:
                engine.resize(changes[step])

        rows = engine.train(split_batches(feeds, 2), [parts[2]], report)
        return rows, engine.parameters()


@pytest.mark.parametrize("divide", [divided, collective])
@pytest.mark.parametrize("network, optimizer", [(lenet, adam), (word2vec, schedule), (shared_table, sgd)])
def test_the_numbers_are_those_of_one_process(divide: Any, network: Any, optimizer: Any) -> None:
    if network is shared_table and divide is collective:
        network = word2vec  # there are no servers for its rows
    feeds = batches(built(network, optimizer)[0], 11, rows=12)
    expected_losses, expected = one_process(built(network, optimizer), feeds)
    rows, parameters = trained(divide, network, optimizer, feeds, CHANGES)
    counts = [sum(row[step] is not None for row in rows) for step in range(11)]
    assert counts[:2] == [2, 2] and set(counts) == {1, 2, 3, 4} and counts[-1] == 4, counts
    losses = [np.mean([row[step][0].item() for row in rows if row[step] is not None]) for step in range(11)]
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


def test_servers_find_the_training_at_any_time_while_trainers_join(monkeypatch: pytest.MonkeyPatch) -> None:
    feeds = batches(built(word2vec, sgd)[0], 6, rows=12)
    lost: list[bool] = []

    def watched(*args: Any, **kwargs: Any) -> None:
        detach(*args, **kwargs)
        lost.append("ps:0" not in engine._engines)

    monkeypatch.setattr(engine, "detach", watched)
    trained(divided, word2vec, sgd, feeds, {1: 3, 3: 1})
    assert lost == [False, False, True]  # with each change, and when the training has ended


def test_trainers_that_join_have_the_running_averages_of_the_first() -> None:
    def network() -> fluid.Variable:
        x, y = layers.data("x", [4]), layers.data("y", [1])
        hidden = layers.batch_norm(layers.fc(x, 3))
        return layers.mean(layers.square_error_cost(layers.fc(hidden, 1), y))

    parts = built(network, adam)
    feeds = batches(parts[0], 3, rows=12)
    for divide in (divided, collective):
        with LocalEngine(divide(built(network, adam))) as engine:
            engine.train(split_batches(feeds, 2))
            engine.resize(3)
            engine.train(split_batches(feeds[:1], 2))
            first, last = (engine.scopes[f"trainer:{n}"].find_var("batch_norm_0.w_1") for n in (0, 2))
            first, last = np.array(first.get_tensor()), np.array(last.get_tensor())
        most = abs(first).argmax()  # after a first step it would be less than half
        assert abs(first[most] - last[most]) < 0.4 * abs(first[most])


def test_asynchronous_trainers_join_and_leave() -> None:
    def linear() -> fluid.Variable:  # its gradients do not depend on the parameters, hence not on the order
        return layers.mean(layers.fc(layers.data("x", [5]), 1))

    feeds = batches(built(linear, adam)[0], 40, rows=12)

    def asynchronous(parts: Any) -> fluid.DistributeTranspiler:
        return divided(parts, sync_mode=False)

    # No trainer waits for another: between the two changes are enough steps for the third to begin.
    rows, _ = trained(asynchronous, linear, sgd, feeds, {1: 3, 25: 2})
    assert len(rows) == 3 and rows[0].count(None) == 0 and 0 < rows[2].count(None) < 40


def test_the_same_bits_in_every_run() -> None:
    feeds = batches(built(lenet, adam)[0], 8, rows=12)
    network = lambda: lenet(dropout=0.3)  # noqa: E731
    parts = built(network, adam)
    results = []
    for _ in range(2):
        with LocalEngine(divided(built(network, adam))) as engine:
            for first, count in ((0, 2), (2, 3), (5, 1)):
                engine.resize(count)
                engine.train(split_batches(feeds[first : first + 3], 2))
            results.append(engine.parameters())
    assert parts[0] is not None and all(np.array_equal(results[0][name], results[1][name]) for name in results[0])


def test_what_cannot_be_shared_is_refused() -> None:
    parts = built(lenet, adam)
    feeds = batches(parts[0], 3, rows=4)
    with LocalEngine(divided(parts)) as engine:
        with pytest.raises(FluidError, match="A training needs a trainer"):
            engine.resize(0)
    with pytest.raises(FluidError, match="100 trainers are too many to join"):
        RayEngine(divided(built(lenet, adam))).resize(100)
    for reader, message in (
        (split_batches(feeds, 2), "A batch of 4 rows cannot be shared equally by 3 trainers"),
        (lambda trainer: split_batches(feeds, 2)(trainer), "cannot share its batches among another number"),
    ):
        with pytest.raises(FluidError, match=message), LocalEngine(divided(built(lenet, adam))) as engine:
            engine.resize(3)
            engine.train(reader)


def test_steps_before_all_go_back_are_reported(tmp_path: Path) -> None:
    parts = built(fit_a_line, sgd)
    programs = collective(parts).get_trainer_programs(0)
    steps: set[int] = set()

    def reach(endpoint: str, method: str, *args: Any, **check: Any) -> Any:
        """A group whose other trainer has the same gradients, and ends in the fourth step."""
        assert role.connection is not None
        steps.add(role.connection.step)
        if len(steps) > 3:
            raise Rejoin("all have gone back")
        return args[-1]

    role = TrainerRole(0, str(tmp_path), 1)
    data = [program.desc.serialize_to_string() for program in programs]
    role.prepare((data[0], data[1]), 1, ["trainer:0", "trainer:1"], True, reach, True, {})
    feeds = batches(parts[0], 8)
    try:
        start, values, ended = role.steps(1, 0, 0, 0, lambda number: feeds, [parts[2].name])
        assert (start, len(values), ended) == (0, 3, False)
        with pytest.raises(Rejoin):
            role.steps(1, 0, 3, 0, lambda number: feeds, [parts[2].name])
    finally:
        detach(role)
