"""A discrete-event simulation of training with many trainers and parameter servers, over the same programs."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count

import numpy as np

from fluidnb.arguments import checked
from fluidnb.errors import OpValueError
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.values.dtypes import np_dtype

#: Modes that `simulate` knows, and what a trainer waits for in each.
MODES = {"sync": "the gradients of all trainers", "async": "the update by its own gradients", "all-reduce": "the sum"}


@dataclass(frozen=True)
class Workload:
    """A training step as the simulation sees it.

    Attributes:
        pushed: bytes that one trainer sends to each server in a step.
        pulled: bytes that it receives from each.
        parameters: bytes of all gradients, which an all-reduce sums up.
    """

    pushed: tuple[int, ...]
    pulled: tuple[int, ...]
    parameters: int


@dataclass(frozen=True)
class Cluster:
    """Speeds of machines and of the network between them.

    Attributes:
        compute: seconds that a trainer computes in a step.
        update: seconds of a server for each byte of gradients that it sums up and applies.
        latency: seconds of a message on its way.
        bandwidth: bytes in a second of each machine's link, in each direction.
        message: seconds that either end computes for a message.
        copy: seconds that either end computes for each byte of a message.
        spread: standard deviation of the logarithm of the time that a trainer computes; 0 for no stragglers.
        failures: of each role, in an hour.
        restart: seconds from a failure to the next step.
        every: steps between two checkpoints.
        cores: processor cores that all roles share, on one machine; None where each role has a machine.
    """

    compute: float
    update: float = 1e-9
    latency: float = 1e-4
    bandwidth: float = 1.25e9
    message: float = 1e-4
    copy: float = 0.0
    spread: float = 0.0
    failures: float = 0.0
    restart: float = 30.0
    every: int = 1
    cores: int | None = None

    def __post_init__(self) -> None:
        for name in ("compute", "update", "latency", "message", "copy", "spread", "failures", "restart"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise OpValueError(
                    f"{name} of a cluster must be 0 or more.", expected="a finite number, not negative", received=value,
                    hint=f"Cluster({name}=0) leaves it out." if name != "compute" else "measure one step.",
                )  # fmt: skip
        if not self.bandwidth > 0:
            raise OpValueError(
                "bandwidth of a cluster must be positive.", expected="bytes in a second", received=self.bandwidth,
                hint="1.25e9 is a link of 10 Gbit/s; float('inf') leaves it out.",
            )  # fmt: skip


@dataclass
class Forecast:
    """The result of a simulation.

    Attributes:
        trainers: how many there are.
        servers: how many there are.
        steps: training steps of each trainer.
        seconds: of all steps.
        compute: seconds that each trainer computes in a step, on average.
        busy: resource -> share of the time in which the busiest one of its kind works: ``trainers``, ``servers``
            (processors), ``trainer links``, ``server links``.
        sent: bytes that trainers have sent.
        received: bytes that servers have received; with all-reduce, that trainers have.
        failures: roles that have failed.
    """

    trainers: int
    servers: int
    steps: int
    seconds: float
    compute: float
    busy: dict[str, float] = field(default_factory=dict)
    sent: int = 0
    received: int = 0
    failures: int = 0

    @property
    def step(self) -> float:
        """Seconds of a step, on average."""
        return self.seconds / self.steps

    @property
    def speedup(self) -> float:
        """Batches in a second, relative to one machine that trains alone and only computes."""
        return self.trainers * self.compute / self.step

    @property
    def limit(self) -> str:
        """The resource that is busiest."""
        return max(self.busy, key=lambda name: self.busy[name])


class _Resource:
    """Serves one request after another, or several at a time, in the order in which they come."""

    def __init__(self, places: int = 1) -> None:
        self.free = [0.0] * places
        self.busy = 0.0

    def use(self, now: float, seconds: float) -> tuple[float, float]:
        """Start and end of a request that comes now."""
        start = max(now, self.free[0])
        heapq.heapreplace(self.free, start + seconds)
        self.busy += seconds
        return start, start + seconds

    def stop(self, until: float) -> None:
        """Serve nothing before a time."""
        self.free = [until] * len(self.free)


class _Simulation:
    """The events of one training."""

    def __init__(self, work: Workload, cluster: Cluster, trainers: int, seed: int) -> None:
        self.work, self.cluster, self.trainers = work, cluster, trainers
        self.servers = len(work.pushed)
        self.draw = np.random.default_rng(seed)
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.order = count()
        shared = None if cluster.cores is None else _Resource(cluster.cores)
        self.computers = [shared or _Resource() for _ in range(trainers)]
        self.updaters = [shared or _Resource() for _ in range(self.servers)]
        self.trainer_links = [(_Resource(), _Resource()) for _ in range(trainers)]  # out, in
        self.server_links = [(_Resource(), _Resource()) for _ in range(self.servers)]
        self.sent = self.received = self.failed = 0
        roles = trainers + self.servers
        self.rate = cluster.failures * roles / 3600  # failures in a second

    def at(self, time: float, event: Callable[[float], None]) -> None:
        """Let an event happen at a time."""
        heapq.heappush(self.events, (time, next(self.order), event))

    def duration(self) -> float:
        """Seconds that a trainer computes in a step, with a factor whose mean is 1."""
        spread = self.cluster.spread
        return self.cluster.compute * math.exp(self.draw.normal(-spread * spread / 2, spread) if spread else 0.0)

    def transfer(
        self, now: float, size: int, ends: tuple[_Resource, _Resource], links: tuple[_Resource, _Resource],
        then: Callable[[float], None],
    ) -> None:  # fmt: skip
        """Move a message: the sender handles it, both links carry it, the receiver handles it."""
        cluster = self.cluster
        handling, wire = cluster.message + size * cluster.copy, size / cluster.bandwidth

        def leave(now: float) -> None:
            start, _ = links[0].use(now, wire)
            self.at(start + cluster.latency, arrive)

        def arrive(now: float) -> None:
            _, end = links[1].use(now, wire)
            self.at(end, handle)

        def handle(now: float) -> None:
            self.at(ends[1].use(now, handling)[1], then)

        self.at(ends[0].use(now, handling)[1], leave)

    # ---- training with servers

    def with_servers(self, steps: int, sync: bool) -> float:
        """All steps of all trainers; gives the seconds that they take."""
        self.steps, self.sync = steps, sync
        self.ended = [0.0] * self.trainers
        self.done = [0] * self.trainers  # steps of each trainer
        self.committed = 0  # steps of which every server has a checkpoint
        self._from(0.0, 0)
        if self.rate:
            self.at(self.draw.exponential(1 / self.rate), self.fail)
        while self.events and min(self.done) < steps:
            now, _, event = heapq.heappop(self.events)
            event(now)
        return max(self.ended)

    def _from(self, now: float, step: int) -> None:
        """Let all trainers begin a step."""
        self.done = [step] * self.trainers
        self.arrived = [0] * self.servers  # gradients of the step that servers wait for
        self.updated = [step] * self.servers
        self.waiting = [self.servers] * self.trainers  # servers whose parameters each trainer has not
        for trainer in range(self.trainers):
            self.at(now, partial(self.begin, trainer))

    def begin(self, trainer: int, now: float) -> None:
        """A trainer computes, then sends its gradients: to all servers at once, or to one after another."""
        _, end = self.computers[trainer].use(now, self.duration())
        for server in range(self.servers if self.sync else 1):
            self.at(end, partial(self.push, trainer, server))

    def push(self, trainer: int, server: int, now: float) -> None:
        """A trainer sends the gradients of a step to one server."""
        size = self.work.pushed[server]
        self.sent += size
        ends = self.computers[trainer], self.updaters[server]
        links = self.trainer_links[trainer][0], self.server_links[server][1]
        self.transfer(now, size, ends, links, partial(self.arrive, trainer, server))

    def arrive(self, trainer: int, server: int, now: float) -> None:
        """A server has the gradients of a trainer; it updates, with those of all if it waits for all."""
        size = self.work.pushed[server]
        self.received += size
        self.arrived[server] += 1
        if not self.sync:
            _, end = self.updaters[server].use(now, size * self.cluster.update)
            self.at(end, partial(self.next_server, trainer, server + 1))
        elif self.arrived[server] == self.trainers:
            _, end = self.updaters[server].use(now, size * self.trainers * self.cluster.update)
            self.at(end, partial(self.answer, server))

    def next_server(self, trainer: int, server: int, now: float) -> None:
        """A trainer that waits for no other sends to the next server, or gets the parameters of all."""
        if server < self.servers:
            self.push(trainer, server, now)
            return
        for server in range(self.servers):
            self.pull(trainer, server, now)

    def answer(self, server: int, now: float) -> None:
        """A server has finished a step: all trainers get its parameters."""
        self.arrived[server] = 0
        self.updated[server] += 1
        self.committed = max(self.committed, min(self.updated) // self.cluster.every * self.cluster.every)
        for trainer in range(self.trainers):
            self.pull(trainer, server, now)

    def pull(self, trainer: int, server: int, now: float) -> None:
        """A trainer gets the parameters of one server; with those of the last one, its step ends."""
        ends = self.updaters[server], self.computers[trainer]
        links = self.server_links[server][0], self.trainer_links[trainer][1]
        self.transfer(now, self.work.pulled[server], ends, links, partial(self.finish, trainer))

    def finish(self, trainer: int, now: float) -> None:
        """The parameters of one server have come."""
        self.waiting[trainer] -= 1
        if self.waiting[trainer]:
            return
        self.waiting[trainer] = self.servers
        self.ended[trainer] = now
        self.done[trainer] += 1
        if self.done[trainer] < self.steps:
            self.begin(trainer, now)

    def fail(self, now: float) -> None:
        """A role fails. All continue from the checkpoint, or the others continue meanwhile."""
        self.failed += 1
        again = now + self.cluster.restart
        if self.sync:
            self.events.clear()
            for resource in self.resources():
                resource.stop(again)
            self._from(again, self.committed)
        else:
            roles = [*self.computers, *self.updaters]
            roles[self.draw.integers(len(roles))].stop(again)
        self.at(again + self.draw.exponential(1 / self.rate), self.fail)

    # ---- training without servers

    def all_reduce(self, steps: int) -> float:
        """Steps with a ring: each trainer passes parts of the sum to the next, 2 (n - 1) times."""
        cluster, n = self.cluster, self.trainers
        rounds, part = 2 * (n - 1), self.work.parameters / n
        work = 2 * (cluster.message + part * cluster.copy) + part * cluster.update
        crowd = 1.0 if cluster.cores is None else max(1.0, n / cluster.cores)
        ring = rounds * (crowd * work + part / cluster.bandwidth + cluster.latency)
        own = self.work.parameters * cluster.update  # each trainer updates all parameters
        now, done, committed = 0.0, 0, 0
        failure = self.draw.exponential(1 / self.rate) if self.rate else math.inf
        while done < steps:
            ends = [computer.use(now, self.duration())[1] for computer in self.computers]
            for trainer in range(n):
                self.computers[trainer].busy += rounds * work
                for link in self.trainer_links[trainer]:
                    link.busy += rounds * part / cluster.bandwidth
            self.sent += round(rounds * part) * n
            self.received += round(rounds * part) * n
            now = max(computer.use(max(ends) + ring, own)[1] for computer in self.computers)
            done += 1
            if now > failure:
                self.failed += 1
                now, done = max(failure, 0.0) + cluster.restart, committed
                for resource in self.resources():
                    resource.stop(now)
                failure = now + self.draw.exponential(1 / self.rate)
            committed = done // cluster.every * cluster.every
        return now

    def resources(self) -> list[_Resource]:
        """All processors and links."""
        return [*self.computers, *self.updaters, *chain(*self.trainer_links, *self.server_links)]


def workload(transpiler: DistributeTranspiler, rows: int = 0) -> Workload:
    """The bytes that the programs of a training move in each step.

    Args:
        transpiler: after its `transpile`.
        rows: rows of a table that the batch of one trainer contains, for gradients that are SelectedRows.

    Example:
        >>> x = fluid.layers.data("x", [100])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 100, bias_attr=False))
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> t = fluid.DistributeTranspiler(); t.transpile(0, pservers="ps:0", trainers=2)
        >>> workload(t)
        Workload(pushed=(40000,), pulled=(40000,), parameters=40000)
    """
    plan = transpiler.plan
    block = plan.program.global_block()
    pushed, pulled = dict.fromkeys(plan.endpoints, 0), dict.fromkeys(plan.endpoints, 0)
    for parts in plan.slices.values():
        width = math.prod(parts[0].shape[1:]) * np_dtype(block.var(parts[0].parameter).dtype).itemsize
        height = sum(part.shape[0] for part in parts)
        for part in parts:
            share = part.shape[0] if not part.rows else min(part.shape[0], math.ceil(rows * part.shape[0] / height))
            pushed[part.endpoint] += share * (width + 8 * part.rows)
            pulled[part.endpoint] += part.shape[0] * width
    for name, table in plan.tables.items():
        width = table.width * np_dtype(block.var(name).dtype).itemsize
        for endpoint in plan.endpoints:
            share = math.ceil(min(rows, table.height) / table.servers) * (width + 8)
            pushed[endpoint] += share
            pulled[endpoint] += share
    return Workload(tuple(pushed.values()), tuple(pulled.values()), sum(pushed.values()))


@checked
def simulate(
    transpiler: DistributeTranspiler | Workload, cluster: Cluster, trainers: int | None = None,
    servers: int | None = None, mode: str | None = None, steps: int = 10, seed: int = 0,
) -> Forecast:  # fmt: skip
    """Predict the speed of a training on a cluster.

    Every message, update and step is an event: a machine's link carries one message after another, a server handles
    one after another, and a step waits for what the mode says. Numbers of a run here, from `calibrate`, make it a
    prediction for more roles or another network.

    Args:
        transpiler: whose programs are run; or their `workload`.
        cluster: speeds.
        trainers: how many; None for those of `transpile`, or 1.
        servers: how many, with equal shares of the bytes; None for those of `transpile`.
        mode: ``"sync"``, ``"async"`` or ``"all-reduce"``; None for that of `transpile`.
        steps: training steps of each trainer.
        seed: of stragglers and failures.

    Returns:
        The forecast.

    Raises:
        OpValueError: no trainers, servers or steps, or no such mode.

    Example:
        >>> work, cluster = Workload((4_000_000,), (4_000_000,), 4_000_000), Cluster(compute=0.1)
        >>> [round(simulate(work, cluster, trainers=n).speedup, 1) for n in (1, 8, 64)]
        [0.9, 4.9, 10.9]
        >>> simulate(work, cluster, trainers=64).limit
        'servers'
    """
    if isinstance(transpiler, DistributeTranspiler):
        plan, work = transpiler.plan, workload(transpiler)
        trainers = plan.trainers if trainers is None else trainers
        mode = ("sync" if plan.sync else "async") if mode is None else mode
    else:
        work = transpiler
    trainers, mode = 1 if trainers is None else trainers, "sync" if mode is None else mode
    if mode not in MODES:
        raise OpValueError(
            f"There is no mode {mode!r}.", expected=", ".join(f'"{name}": a trainer waits for {what}' for name, what
            in MODES.items()), received=repr(mode), hint='mode="sync" is the default.',
        )  # fmt: skip
    if servers is not None and servers != len(work.pushed):
        work = _shared(work, servers)
    for name, value in (("trainers", trainers), ("servers", len(work.pushed)), ("steps", steps)):
        if value < 1:
            raise OpValueError(
                f"A simulation needs {name}.", expected="1 or more", received=value, hint=f"simulate(..., {name}=1)"
            )
    run = _Simulation(work, cluster, trainers, seed)
    seconds = run.all_reduce(steps) if mode == "all-reduce" else run.with_servers(steps, mode == "sync")
    kinds = {"trainers": run.computers, "trainer links": list(chain(*run.trainer_links))}
    if mode != "all-reduce":
        kinds |= {"servers": run.updaters, "server links": list(chain(*run.server_links))}
    return Forecast(
        trainers, 0 if mode == "all-reduce" else run.servers, steps, seconds, cluster.compute,
        {name: _busiest(resources, seconds) for name, resources in kinds.items()}, run.sent, run.received, run.failed,
    )  # fmt: skip


def _busiest(resources: Iterable[_Resource], seconds: float) -> float:
    """Share of the time in which the busiest resource works."""
    return max(resource.busy / len(resource.free) for resource in resources) / seconds if seconds else 0.0


def _shared(work: Workload, servers: int) -> Workload:
    """The same bytes, in equal shares of so many servers."""

    def divided(total: int) -> tuple[int, ...]:
        return tuple(total * (i + 1) // servers - total * i // servers for i in range(servers))

    return replace(work, pushed=divided(sum(work.pushed)), pulled=divided(sum(work.pulled)))


@checked
def calibrate(small: Sequence[float], large: Sequence[float], cores: int | None = None) -> Cluster:
    """The cluster that measured steps describe.

    Each measurement is of one trainer and one server, with another size of the parameters: the difference is the price
    of a byte, the rest that of a message.

    Args:
        small: bytes pushed in a step; seconds of the computation alone, of the server's update, and of the whole step.
        large: the same for a program with more bytes; its computation is that of the cluster.
        cores: processor cores that the roles shared.

    Returns:
        A cluster for which the step of one trainer and one server takes as long as was measured.

    Example:
        >>> cluster = calibrate((1e3, 0.010, 0.0, 0.014), (4e6, 0.020, 0.004, 0.044), cores=2)
        >>> round(cluster.message, 4), cluster.compute
        (0.001, 0.02)
        >>> work = Workload((4_000_000,), (4_000_000,), 4_000_000)
        >>> round(simulate(work, cluster).step, 4)
        0.044
    """
    few, many = _Measured(*small), _Measured(*large)
    if not many.size > few.size > 0:
        raise OpValueError(
            "The second measurement must have more bytes than the first.", expected=f"more than {few.size:g}",
            received=many.size, hint="calibrate(small, large)",
        )  # fmt: skip
    byte = max(0.0, (many.rest - few.rest) / (many.size - few.size))
    message = max(0.0, many.rest - byte * many.size)
    # A step has two messages, and either end handles each: four times a message, four times a copy of its bytes.
    return Cluster(
        compute=many.compute, update=many.update / many.size, latency=0.0, bandwidth=math.inf, message=message / 4,
        copy=byte / 4, cores=cores,
    )  # fmt: skip


@dataclass(frozen=True)
class _Measured:
    """One measurement: bytes, and seconds."""

    size: float
    compute: float
    update: float
    step: float

    @property
    def rest(self) -> float:
        """Seconds that are neither computation nor update."""
        return max(0.0, self.step - self.compute - self.update)
