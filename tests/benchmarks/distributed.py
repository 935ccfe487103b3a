"""``python -m tests.benchmarks.distributed [WORK ...] [--address HOST:PORT]``: distributed training.

Contestants run in turns, and ratios of neighbouring runs are compared, so that a machine that becomes slower meanwhile
changes little. The exit status is 1 when transfers reach less than 0.8 times the throughput of plain calls of actors.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from fluidnb.distributed import LocalEngine, RayEngine, calibrate, simulate, split_batches, workload
from fluidnb.distributed.connection import Connection
from fluidnb.distributed.ray_engine import _bytes, _Reach
from fluidnb.distributed.ray_start import running_ray
from fluidnb.distributed.roles import ServerRole
from tests.distributed.networks import batches, built, collective, divided, fit_a_line, lenet

#: Throughput relative to plain calls that transfers have to reach.
GOAL = 0.8
_ROWS = 1000  # of a parameter of 4 MB: float32[1000, 1000]

_WORKS = ["transfer", "overhead", "scaling", "places", "forecast"]

Step = Callable[[int], Any]


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def matrix() -> fluid.Variable:
    """One parameter of 4 MB."""
    return layers.mean(layers.fc(layers.data("x", [_ROWS]), _ROWS, bias_attr=False))


def seconds(step: Step, n: int) -> float:
    """Seconds of one of n steps."""
    start = time.perf_counter()
    step(n)
    return (time.perf_counter() - start) / n


def in_turns(contestants: Sequence[Step], rounds: int, n: int) -> list[list[float]]:
    """For each contestant the seconds of a step in each round; the order changes from round to round."""
    times: list[list[float]] = [[] for _ in contestants]
    for step in contestants:
        step(2)
    for turn in range(rounds):
        order = range(len(contestants)) if turn % 2 else reversed(range(len(contestants)))
        for i in order:
            times[i].append(seconds(contestants[i], n))
    return times


def ratio(times: list[list[float]], i: int, j: int) -> float:
    """The median over rounds of the time of i relative to j."""
    return statistics.median(a / b for a, b in zip(times[i], times[j], strict=True))


def runs(program: Any, feeds: Sequence[Any], scope: fluid.Scope, fetch_list: list[Any]) -> Step:
    """Steps of an executor, one batch after another."""
    exe = fluid.Executor()

    def step(n: int) -> None:
        for i in range(n):
            exe.run(program, feed=feeds[i % len(feeds)], fetch_list=fetch_list, scope=scope)

    return step


def started(startup: fluid.Program) -> fluid.Scope:
    """A scope with the parameters of a program."""
    scope = fluid.Scope()
    fluid.Executor().run(startup, scope=scope)
    return scope


def transfer(ray: Any, rounds: int) -> tuple[float, float]:
    """Throughput of push and pull of 4 MB relative to plain actors: one that stores, one that also updates."""
    transpiler = divided(built(matrix, sgd), servers=1, trainers=1)
    (parameter, parts), *_ = transpiler.plan.slices.items()
    gradient, value = parts[0].sent(None), np.ones((_ROWS, _ROWS), "float32")
    server = ray.remote(num_cpus=0, max_concurrency=10)(ServerRole).remote("ps:0", "/nowhere", 1 << 60)
    ray.get(server.begin.remote(0, 0, _bytes(transpiler.get_pserver_programs("ps:0")), 7, 1, True))
    connection = Connection(0, True, _Reach({"ps:0": server}))
    received = np.empty_like(value)

    class Plain:
        """Transfers as a user of Ray writes them."""

        def __init__(self, updates: bool) -> None:
            self.updates, self.value = updates, np.zeros((_ROWS, _ROWS), "float32")

        def push(self, gradient: Any) -> None:
            self.value = self.value - np.float32(0.1) * gradient if self.updates else gradient

        def pull(self) -> Any:
            return self.value

    stores, updates = (ray.remote(num_cpus=0)(Plain).remote(updates) for updates in (False, True))

    def engine(n: int) -> None:
        for _ in range(n):
            connection.send("ps:0", gradient, value)
            connection.send_barrier(["ps:0"])
            np.copyto(received, connection.receive("ps:0", parameter, lambda: None))

    def plain(actor: Any) -> Step:
        def step(n: int) -> None:
            for _ in range(n):
                ray.get(actor.push.remote(value))
                np.copyto(received, ray.get(actor.pull.remote()))

        return step

    times = in_turns([engine, plain(stores), plain(updates)], rounds, 10)
    for actor in (server, stores, updates):
        ray.kill(actor)
    names = ("RayEngine: push, update, pull", "plain actor: push, pull", "plain actor: push, update, pull")
    for name, row in zip(names, times, strict=True):
        print(f"  {name:34} {statistics.median(row) * 1e3:8.2f} ms   {8 / statistics.median(row) / 1e3:6.2f} GB/s")
    return 1 / ratio(times, 0, 1), 1 / ratio(times, 0, 2)


def overhead(rounds: int) -> float:
    """Seconds of a step of `LocalEngine` with one trainer and one server relative to the plain executor."""
    main, startup, loss = built(lenet, sgd)
    feeds = batches(main, 10, rows=64)
    alone = runs(main, feeds, started(startup), [loss])
    other = built(lenet, sgd)
    with LocalEngine(divided(other, servers=1, trainers=1)) as engine:

        def local(n: int) -> None:
            engine.train(lambda trainer: [feeds[i % len(feeds)] for i in range(n)], fetch_list=[other[2]])

        times = in_turns([local, alone], rounds, 20)
    for name, row in zip(("LocalEngine, 1 trainer, 1 server", "Executor"), times, strict=True):
        print(f"  {name:34} {statistics.median(row) * 1e3:8.2f} ms")
    return ratio(times, 0, 1)


class Training:
    """A training in processes whose steps can be timed.

    Args:
        network: what it trains.
        trainers: how many; each has 256 rows in a batch.
        servers: how many.
        address: of a Ray cluster.
    """

    def __init__(self, network: Callable[[], fluid.Variable], trainers: int, servers: int, address: str | None) -> None:
        parts = built(network, sgd)
        transpiler = divided(parts, servers, trainers, f"{network.__name__}.{trainers}")
        self.trainers, self.servers, self.work = trainers, servers, workload(transpiler)
        self.feeds = batches(parts[0], 20, rows=256 * trainers)
        self.engine = RayEngine(transpiler, address=address)

    def __call__(self, n: int) -> None:
        feeds = [self.feeds[i % len(self.feeds)] for i in range(n)]
        self.engine.train(split_batches(feeds, self.trainers))


def scaling(address: str | None, rounds: int) -> float:
    """Examples in a second of two trainers relative to one, in processes."""
    trainings = [Training(lenet, trainers, 1, address) for trainers in (1, 2)]
    with trainings[0].engine, trainings[1].engine:
        times = in_turns(trainings, rounds, 20)
    for training, row in zip(trainings, times, strict=True):
        rate = 256 * training.trainers / statistics.median(row)
        print(
            f"  {training.trainers} trainers, 1 server {statistics.median(row) * 1e3:8.2f} ms   {rate:8.0f} examples/s"
        )
    return 2 / ratio(times, 1, 0)


def places(address: str | None, rounds: int) -> tuple[float, float]:
    """Throughput of two places in threads, and of two trainers in processes, relative to one executor; 512 rows."""
    main, startup, loss = built(lenet, sgd)
    feeds, scope = batches(main, 20, rows=512), started(startup)
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))
    threads = [runs(program, feeds, scope, [loss.name]) for program in (main, compiled)]
    with RayEngine(collective(built(lenet, sgd)), address=address) as engine:

        def processes(n: int) -> None:
            engine.train(split_batches([feeds[i % len(feeds)] for i in range(n)], 2))

        times = in_turns([*threads, processes], rounds, 20)
    for name, row in zip(("one executor", "two places, threads", "two trainers, processes"), times, strict=True):
        print(f"  {name:34} {statistics.median(row) * 1e3:8.2f} ms")
    return 1 / ratio(times, 1, 0), 1 / ratio(times, 2, 0)


def forecast(address: str | None, rounds: int) -> None:
    """Steps of 1 to 4 trainers in processes, beside what `simulate` says after a calibration with one."""

    def alone(network: Callable[[], fluid.Variable]) -> Step:
        main, startup, _ = built(network, sgd)
        return runs(main, batches(main, 20, rows=256), started(startup), [])

    trainings = [Training(fit_a_line, 1, 1, address)]
    trainings += [Training(lenet, trainers, servers, address) for trainers, servers in ((1, 1), (2, 1), (3, 1), (4, 2))]
    with contextlib.ExitStack() as engines:
        for training in trainings:
            engines.enter_context(training.engine)
        times = in_turns([alone(fit_a_line), alone(lenet), *trainings], rounds, 10)
    small, large, *together = map(statistics.median, times)
    cores = os.cpu_count() or 1
    pairs = zip(trainings, (small, large), together, strict=False)
    here = calibrate(*[(sum(t.work.pushed), compute, 0.0, step) for t, compute, step in pairs])
    print("  trainers  servers  measured  predicted, 1 core  all cores  error of the nearer")
    for training, measured in list(zip(trainings, together, strict=True))[1:]:
        one, most = (
            simulate(training.work, replace(here, cores=n), training.trainers, steps=10).step for n in (1, cores)
        )
        error = min((one / measured - 1, most / measured - 1), key=abs)
        print(
            f"  {training.trainers:8}  {training.servers:7}  {measured * 1e3:5.1f} ms  {one * 1e3:14.1f} ms  "
            f"{most * 1e3:6.1f} ms  {error:+.0%}"
        )


def main() -> int:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.distributed")
    parser.add_argument("works", nargs="*", choices=[*_WORKS, []], default=[])
    parser.add_argument("--address", help="of a Ray cluster; without it one starts on this machine")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    works, missed = options.works or _WORKS, False
    if "overhead" in works:
        print("overhead: LeNet, batch of 64")
        print(f"  a distributed step takes {overhead(options.rounds):.2f} times as long")
    if set(works) - {"overhead"}:
        with running_ray(options.address) as ray:
            if "transfer" in works:
                print("transfer: 4 MB to a server and 4 MB back")
                stored, updated = transfer(ray, options.rounds)
                missed = updated < GOAL
                print(f"  {stored:.2f} of an actor that stores, {updated:.2f} of one that updates (goal {GOAL})")
            if "scaling" in works:
                print("scaling: LeNet, 256 rows for each trainer, processes")
                print(f"  two trainers have {scaling(options.address, options.rounds):.2f} times the throughput of one")
            if "places" in works:
                print("places: LeNet, a batch of 512")
                threads, processes = places(options.address, options.rounds)
                print(f"  {threads:.2f} times the throughput by threads, {processes:.2f} by processes")
            if "forecast" in works:
                print("forecast: LeNet, 256 rows for each trainer, processes")
                forecast(options.address, options.rounds)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
