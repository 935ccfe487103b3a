"""The simulation of many machines: its properties, and the numbers that it was calibrated with."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.distributed.simulator import MODES, Cluster, Workload, calibrate, simulate, workload
from fluidnb.errors import OpValueError
from tests.distributed.networks import built, divided, fit_a_line, shared_table, wide_regression

WORK = Workload((3_000_000, 1_000_000), (3_000_000, 1_000_000), 4_000_000)


def clusters(number: int) -> list[Cluster]:
    """Random clusters, each role on a separate machine."""
    draw = np.random.default_rng(5)
    return [
        Cluster(
            compute=10 ** draw.uniform(-3, 0), update=10 ** draw.uniform(-11, -8), latency=10 ** draw.uniform(-5, -2),
            bandwidth=10 ** draw.uniform(7, 10), message=10 ** draw.uniform(-6, -3), copy=10 ** draw.uniform(-11, -9),
        )
        for _ in range(number)
    ]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("trainers", [1, 2, 7, 20])
def test_more_bandwidth_is_never_slower(mode: str, trainers: int) -> None:
    for cluster in clusters(8):
        times = [
            simulate(WORK, replace(cluster, bandwidth=cluster.bandwidth * factor), trainers, mode=mode, steps=3).seconds
            for factor in (1, 2, 10, 1000)
        ]
        if mode == "async" and trainers > 2:  # the order of messages changes, and with it who ends last
            times = [times[0], times[-1] / 1.15]
        assert all(b <= a * (1 + 1e-9) for a, b in zip(times, times[1:], strict=False)), (cluster, times)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("trainers, servers", [(1, 1), (3, 2), (16, 5)])
def test_bytes_are_conserved(mode: str, trainers: int, servers: int) -> None:
    forecast = simulate(WORK, Cluster(0.01, spread=0.5), trainers, servers, mode=mode, steps=4)
    assert forecast.sent == forecast.received
    if mode != "all-reduce":
        assert forecast.sent == trainers * 4 * sum(WORK.pushed)
    else:
        each = 2 * (trainers - 1) * WORK.parameters / trainers
        assert forecast.sent == pytest.approx(trainers * 4 * each, rel=1e-6)


@pytest.mark.parametrize("step", [0.041, 0.05, 0.5])
def test_one_trainer_takes_what_was_measured(step: float) -> None:
    cluster = calibrate((1000, 0.010, 0.0, 0.012), (4_000_000, 0.030, 0.005, step))
    assert simulate(Workload((4_000_000,), (4_000_000,), 4_000_000), cluster, steps=7).step == pytest.approx(step)


def test_computation_alone_scales_by_the_number_of_cores() -> None:
    free = Cluster(0.1, update=0, latency=0, bandwidth=math.inf, message=0)
    assert simulate(WORK, free, 8).speedup == pytest.approx(8)
    assert simulate(WORK, replace(free, cores=2), 8).speedup == pytest.approx(2)
    assert simulate(WORK, replace(free, cores=2), 1).speedup == pytest.approx(1)


def test_a_step_of_one_trainer_by_hand() -> None:
    cluster = Cluster(compute=1.0, update=1e-6, latency=0.25, bandwidth=1e6, message=0.125, copy=0)
    work = Workload((1_000_000,), (1_000_000,), 1_000_000)
    # compute 1, handle, latency, wire 1, handle, update 1, handle, latency, wire 1, handle
    assert simulate(work, cluster, steps=1).seconds == pytest.approx(1 + 1 + 1 + 1 + 2 * 0.25 + 4 * 0.125)


def test_links_of_servers_saturate_and_more_servers_help() -> None:
    cluster = Cluster(compute=0.05, update=0, latency=0, message=0, bandwidth=1e8)
    one = simulate(WORK, cluster, 32, servers=1)
    assert one.limit == "server links"
    # Links carry both directions at once: the first trainers send while the last ones still receive.
    assert 32 * 4e6 / 1e8 < one.step < 2 * 32 * 4e6 / 1e8
    many = simulate(WORK, cluster, 32, servers=16)
    assert many.step < one.step / 4


def test_stragglers_cost_a_step_that_waits_for_all_more_than_one_that_does_not() -> None:
    cluster = Cluster(compute=0.1, update=0, latency=0, message=0, bandwidth=math.inf, spread=0.5)
    waiting = simulate(WORK, cluster, 32, mode="sync", steps=20)
    free = simulate(WORK, cluster, 32, mode="async", steps=20)
    assert waiting.step > 1.5 * free.step > 1.5 * 0.1


def test_failures_cost_restarts_and_steps_since_the_checkpoint() -> None:
    cluster = Cluster(compute=1.0, failures=20.0, restart=5.0)
    without = simulate(WORK, replace(cluster, failures=0.0), 4, steps=300).seconds
    often, seldom = (simulate(WORK, replace(cluster, every=every), 4, steps=300, seed=1) for every in (1, 40))
    assert often.failures > 0
    assert often.seconds >= without + 5.0 * often.failures * 0.99
    assert seldom.seconds > often.seconds


def test_the_same_seed_gives_the_same_forecast() -> None:
    cluster = Cluster(compute=0.1, spread=0.4, failures=100.0)
    assert simulate(WORK, cluster, 5, seed=3) == simulate(WORK, cluster, 5, seed=3)
    assert simulate(WORK, cluster, 5, seed=3) != simulate(WORK, cluster, 5, seed=4)


def test_bytes_of_programs() -> None:
    sgd = lambda: fluid.optimizer.SGD(0.1)  # noqa: E731
    wide = workload(divided(built(wide_regression, sgd)))
    assert sum(wide.pushed) == sum(wide.pulled) == 4 * (1000 * 1000 + 1000)
    line = workload(divided(built(fit_a_line, sgd)))
    assert sorted(line.pushed) == [4, 52]
    table = divided(built(shared_table, sgd))
    dense, sparse = workload(table), workload(table, rows=8)
    assert sum(sparse.pushed) - sum(dense.pushed) == 8 * (32 * 4 + 8)  # rows and their numbers


def test_the_mode_and_numbers_of_transpile_are_the_default() -> None:
    sgd = lambda: fluid.optimizer.SGD(0.1)  # noqa: E731
    transpiler = divided(built(fit_a_line, sgd), servers=3, trainers=4, sync_mode=False)
    forecast = simulate(transpiler, Cluster(0.1))
    assert (forecast.trainers, forecast.servers) == (4, 3)
    assert forecast == simulate(transpiler, Cluster(0.1), 4, 3, "async")
    assert forecast != simulate(transpiler, Cluster(0.1), mode="sync")


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: simulate(WORK, Cluster(0.1), 0), "needs trainers"),
        (lambda: simulate(WORK, Cluster(0.1), servers=0), "needs servers"),
        (lambda: simulate(WORK, Cluster(0.1), steps=0), "needs steps"),
        (lambda: simulate(WORK, Cluster(0.1), mode="ring"), "no mode 'ring'"),
        (lambda: Cluster(-1.0), "compute of a cluster must be 0 or more"),
        (lambda: Cluster(0.1, bandwidth=0), "bandwidth of a cluster must be positive"),
        (lambda: calibrate((10, 0, 0, 1), (10, 0, 0, 1)), "must have more bytes"),
    ],
)
def test_bad_input_is_one_sentence(call: object, words: str) -> None:
    with pytest.raises(OpValueError, match=words):
        call()  # type: ignore[operator]
