"""Training by threads: the numbers of one process, the same in every run; errors of a role reach the caller."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.distributed import LocalEngine
from fluidnb.distributed.local import split_batches
from fluidnb.errors import EnforceNotMet, FluidError
from tests.distributed.networks import (
    batches,
    built,
    divided,
    fit_a_line,
    lenet,
    one_process,
    sentences,
    sentiment,
    shared_table,
    word2vec,
)  # fmt: skip

OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "schedule": lambda: fluid.optimizer.Momentum(layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01]), 0.9),
    "adam": lambda: fluid.optimizer.Adam(0.01, regularization=fluid.regularizer.L2Decay(1e-3)),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.01),
}


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    yield
    assert not [t.name for t in threading.enumerate() if t.name.startswith("fluidnb ")]


def trained(transpiler: fluid.DistributeTranspiler, feeds: Any, loss: Any, trainers: int = 2) -> tuple[Any, Any]:
    """Mean losses of all trainers in each step, and the parameters."""
    with LocalEngine(transpiler) as engine:
        losses = engine.train(split_batches(feeds, trainers), fetch_list=[loss])
        parameters = engine.parameters()
    return np.mean([[step[0].item() for step in row] for row in losses], axis=0), parameters


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("network", [fit_a_line, lenet, word2vec])
def test_synchronous_training_equals_one_process(network: Any, optimizer: str) -> None:
    make = OPTIMIZERS[optimizer]
    feeds = batches(built(network, make)[0], 6)
    expected_losses, expected = one_process(built(network, make), feeds)
    parts = built(network, make)
    losses, parameters = trained(divided(parts), feeds, parts[2])
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)
    assert parameters.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


def _factor(loss: fluid.Variable) -> fluid.Variable:
    loss.block.all_parameters()[0].optimize_attr["learning_rate"] = 0.5
    return loss


def _clipped(loss: fluid.Variable) -> fluid.Variable:
    for parameter in loss.block.all_parameters():
        parameter.gradient_clip_attr = fluid.clip.GradientClipByNorm(0.01)
    return loss


@pytest.mark.parametrize(
    ("optimizer", "change"),
    [
        (lambda: fluid.optimizer.SGD(layers.exponential_decay(0.1, 2, 0.5)), None),
        (lambda: fluid.optimizer.SGD(layers.cosine_decay(0.1, 2, 3)), _factor),
        (lambda: fluid.optimizer.Adamax(0.01, beta1=0.5), None),
        (lambda: fluid.optimizer.Lamb(0.01), None),
        (lambda: fluid.optimizer.LarsMomentum(0.1, 0.9), None),
        (lambda: fluid.optimizer.SGD(1.0), _clipped),
    ],
)
def test_updates_of_several_operators_equal_one_process(optimizer: Any, change: Any) -> None:
    """Schedules, powers that advance, norms of whole parameters; the servers may cut parameters of any size."""
    network = fit_a_line if change is None else lambda: change(fit_a_line())
    feeds = batches(built(network, optimizer)[0], 4)
    _, expected = one_process(built(network, optimizer), feeds)
    parts = built(network, optimizer)
    _, parameters = trained(divided(parts, min_block_size=1), feeds, parts[2])
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("servers, trainers", [(1, 1), (3, 1), (1, 4), (3, 4)])
def test_a_table_on_several_servers_equals_one_process(servers: int, trainers: int) -> None:
    feeds = batches(built(shared_table, OPTIMIZERS["sgd"])[0], 4, words=1000)
    expected_losses, expected = one_process(built(shared_table, OPTIMIZERS["sgd"]), feeds)
    parts = built(shared_table, OPTIMIZERS["sgd"])
    losses, parameters = trained(divided(parts, servers, trainers), feeds, parts[2], trainers)
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)
    np.testing.assert_allclose(parameters["table"], expected["table"], rtol=1e-5)


@pytest.mark.parametrize("servers, trainers", [(1, 1), (3, 1), (1, 4), (3, 4)])
def test_any_number_of_roles_gives_the_same(servers: int, trainers: int) -> None:
    feeds = batches(built(lenet, OPTIMIZERS["sgd"])[0], 3)
    expected_losses, _ = one_process(built(lenet, OPTIMIZERS["sgd"]), feeds)
    parts = built(lenet, OPTIMIZERS["sgd"])
    losses, _ = trained(divided(parts, servers, trainers), feeds, parts[2], trainers)
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)


def test_two_runs_give_the_same_bits() -> None:
    def run() -> dict[str, Any]:
        parts = built(word2vec, OPTIMIZERS["adam"])
        return trained(divided(parts), batches(parts[0], 4), parts[2])[1]

    first, second = run(), run()
    assert all((first[name] == second[name]).all() for name in first)


def test_dynamic_rnn_over_sequences() -> None:
    feeds = sentences(4)
    expected_losses, expected = one_process(built(sentiment, OPTIMIZERS["sgd"]), feeds)
    parts = built(sentiment, OPTIMIZERS["sgd"])
    losses, parameters = trained(divided(parts), feeds, parts[2])
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("network", [word2vec, shared_table])
def test_asynchronous_training_learns(network: Any) -> None:
    parts = built(network, OPTIMIZERS["sgd"])
    feeds = batches(parts[0], 1) * 30
    losses, _ = trained(divided(parts, sync_mode=False), feeds, parts[2])
    assert losses[-3:].mean() < 0.9 * losses[0]


def test_asynchronous_training_loses_no_gradient() -> None:
    def linear() -> fluid.Variable:  # whose gradients do not depend on the parameters, hence not on the order
        return layers.mean(layers.fc(layers.data("x", [5]), 1))

    parts = built(linear, OPTIMIZERS["sgd"])
    feeds = batches(parts[0], 6)
    shares = [feed for trainer in range(2) for feed in split_batches(feeds, 2)(trainer)]
    _, expected = one_process(built(linear, OPTIMIZERS["sgd"]), shares)
    _, parameters = trained(divided(parts, sync_mode=False), feeds, parts[2])
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-5, err_msg=name)


def test_training_goes_on_in_a_second_call() -> None:
    feeds = batches(built(fit_a_line, OPTIMIZERS["schedule"])[0], 6)
    expected_losses, _ = one_process(built(fit_a_line, OPTIMIZERS["schedule"]), feeds)
    parts = built(fit_a_line, OPTIMIZERS["schedule"])
    losses: list[float] = []
    with LocalEngine(divided(parts)) as engine:
        for part in (feeds[:4], feeds[4:]):
            rows = engine.train(split_batches(part, 2), fetch_list=[parts[2]])
            losses += list(np.mean([[step[0].item() for step in row] for row in rows], axis=0))
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)


def test_an_error_of_a_trainer_stops_all_roles() -> None:
    parts = built(fit_a_line, OPTIMIZERS["sgd"])
    feeds = batches(parts[0], 3)

    def reader(trainer: int) -> Iterator[dict[str, Any]]:
        yield feeds[0]
        if trainer == 1:
            raise OSError("the disk is gone")
        yield from feeds[1:]

    with pytest.raises(OSError, match="the disk is gone"), LocalEngine(divided(parts)) as engine:
        engine.train(reader)


def test_a_wrong_feed_names_the_variable_and_stops_all_roles() -> None:
    parts = built(fit_a_line, OPTIMIZERS["sgd"])
    with pytest.raises(FluidError, match="x"), LocalEngine(divided(parts)) as engine:
        engine.train(lambda trainer: [{"y": np.ones((4, 1), "float32")}])


def test_a_trainer_that_stops_early_is_no_end_without_end() -> None:
    parts = built(fit_a_line, OPTIMIZERS["sgd"])
    feeds = batches(parts[0], 3)
    with pytest.raises(FluidError, match="trainer:1 has ended after 2 steps"), LocalEngine(divided(parts)) as engine:
        engine.train(lambda trainer: feeds[: 3 - trainer])


def test_programs_need_an_engine() -> None:
    parts = built(fit_a_line, OPTIMIZERS["sgd"])
    trainer = divided(parts).get_trainer_program()
    with pytest.raises(EnforceNotMet, match="No engine serves the endpoint ps:"):
        exe = fluid.Executor()
        exe.run(parts[1])
        exe.run(trainer, feed=batches(parts[0], 1)[0])


def test_two_trainings_at_once_need_other_endpoints() -> None:
    first = divided(built(fit_a_line, OPTIMIZERS["sgd"]))
    second = divided(built(fit_a_line, OPTIMIZERS["sgd"]))
    with LocalEngine(first), pytest.raises(EnforceNotMet, match="belongs to another training"):
        LocalEngine(second).__enter__()


def test_batches_are_shared_equally_or_refused() -> None:
    with pytest.raises(FluidError, match="cannot be shared equally"):
        list(split_batches([{"x": np.zeros((3, 1))}], 2)(0))


def test_endpoints_are_free_when_nobody_waits_for_a_reader_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = built(fit_a_line, lambda: fluid.optimizer.SGD(0.1))
    transpiler = divided(parts)
    engine = LocalEngine(transpiler)
    engine.__enter__()

    def interrupted(self: threading.Thread, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.__exit__(None, None, None)
    with LocalEngine(transpiler) as other:
        other.train(split_batches(batches(parts[0], 1), 2))
    for thread in engine._threads:
        thread.join()
