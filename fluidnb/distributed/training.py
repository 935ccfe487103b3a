"""Training in the background by an engine: started, watched, joined and stopped from anywhere."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from fluidnb.data.feeder import DataFeeder, data_variables, feed_of
from fluidnb.distributed.attachment import role_keys
from fluidnb.distributed.connection import Traffic, samples_of
from fluidnb.distributed.local import Feed, LocalEngine, share_of
from fluidnb.distributed.ray_engine import RayEngine
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.program import Program
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.transpiler.distribute.plan import Plan
from fluidnb.values.place import CPUPlace
from fluidnb.viz.roles.model import Flow, RolesPicture, RoleState
from fluidnb.viz.roles.reader import read_roles

#: Engines by name.
ENGINES = ("local", "ray")
#: Seconds over which a rate is measured.
_WINDOW = 5.0


def is_left_out(size: int, largest: int, trainers: int) -> bool:
    """Whether a smaller batch, such as the last of a pass, cannot be shared equally.

    Example:
        >>> is_left_out(5, 8, 2), is_left_out(6, 8, 2), is_left_out(9, 9, 2)
        (True, False, False)
    """
    return 0 < size < largest and size % trainers > 0


class Shares:
    """Divides the rows or sequences of batches among trainers; a reader for `LocalEngine.train`.

    The batches are read once, whichever trainer is first, so that all trainers get parts of the same ones.

    Args:
        batches: lists of samples, or feeds of arrays.
        feed: makes a feed from a list of samples.
        trainers: how many there are.

    Attributes:
        left_out: samples of smaller batches that cannot be shared equally.
        largest: rows or sequences of the largest batch so far.

    Example:
        >>> shares = Shares([[(1,), (2,)], [(3,), (4,)], [(5,)]], lambda rows: {"x": np.array(rows)}, 2)
        >>> [feed["x"].tolist() for feed in shares(1)], shares.left_out
        ([[[2]], [[4]]], 1)
    """

    def __init__(self, batches: Iterable[Any], feed: Callable[[Sequence[Any]], Feed], trainers: int) -> None:
        self.trainers, self.left_out, self.largest = trainers, 0, 0
        self._batches, self._feed = iter(batches), feed
        self._kept: deque[Feed] = deque()  # whole batches that some trainer may still need
        self._first = 0  # the number of the first of them
        self._begin = 0  # the number of the batch with which a trainer begins
        self._at: dict[int, int] = {}  # trainer -> the number of the batch that it has got last
        self._lock = threading.Lock()

    @classmethod
    def of(
        cls, program: Program, reader: Callable[[], Iterable[Any]] | Iterable[Any], trainers: int, passes: int = 1,
        feed_list: Sequence[Any] | None = None,
    ) -> Shares:  # fmt: skip
        """The shares of a reader's batches.

        Args:
            program: that is fed.
            reader: a function that gives the batches of a pass, or the batches: lists of samples, or feeds.
            trainers: how many there are.
            passes: how often to go through the reader.
            feed_list: what a sample has fields for, variables or names; all data variables by default.

        Raises:
            OpValueError: the program reads no data.
        """
        fed = data_variables(program) if feed_list is None else list(feed_list)
        if not fed:
            raise OpValueError(
                "The program reads no data.", expected="a variable made by layers.data", received=program.short(),
                hint='x = fluid.layers.data("x", shape=[13]) makes one.',
            )  # fmt: skip
        feeder = DataFeeder(fed, CPUPlace(), program)
        batches = (batch for _ in range(passes) for batch in (reader() if callable(reader) else reader))
        return cls(batches, partial(feed_of, feeder), trainers)

    def __call__(self, trainer: int) -> Iterator[Feed]:
        """The batches of a trainer."""
        number = self._begin
        while (whole := self._whole(trainer, number)) is not None:
            yield share_of(whole, self.trainers, trainer)
            number += 1

    def whole(self) -> Iterator[Feed]:
        """The batches that are left, each whole, as feeds."""
        yield from iter(self._read, None)

    def among(self, trainers: int, first: int) -> Shares:
        """The batches from one on, for another number of trainers: this reader, since its batches are read once."""
        with self._lock:
            self.trainers, self._begin, self._at = trainers, self._begin + first, {}
        return self

    def _whole(self, trainer: int, number: int) -> Feed | None:
        """The batch of a number; None at the end."""
        with self._lock:
            while self._first + len(self._kept) <= number:
                feed = self._read()
                if feed is None:
                    return None
                self._kept.append(feed)
            self._at[trainer] = number
            if len(self._at) == self.trainers:
                while self._first < min(self._at.values()):  # the one that a trainer has got may not be used yet
                    self._kept.popleft()
                    self._first += 1
            return self._kept[number - self._first]

    def _read(self) -> Feed | None:
        """The next batch that can be shared."""
        for batch in self._batches:
            size = samples_of(batch if isinstance(batch, dict) else {"the batch": list(batch)})
            if is_left_out(size, self.largest, self.trainers):
                self.left_out += size
                continue
            self.largest = max(self.largest, size)
            return batch if isinstance(batch, dict) else self._feed(batch)
        return None


class _Stored:
    """A reader of batches that Ray's object store has.

    Args:
        shares: gives the whole batches.

    Attributes:
        left_out: samples of smaller batches that cannot be shared equally.
    """

    def __init__(self, shares: Shares) -> None:
        import ray

        whole = list(shares.whole())
        self._sizes, self._reference = [samples_of(feed) for feed in whole], ray.put(whole)
        self.left_out = shares.left_out
        self._divide(0, shares.trainers)

    def __call__(self, trainer: int) -> Iterable[Feed]:
        """The batches of a trainer."""
        import ray

        whole: list[Feed] = ray.get(self._reference)
        return (share_of(whole[number], self.trainers, trainer) for number in self._numbers)

    def among(self, trainers: int, first: int) -> _Stored:
        """The batches from one on, for another number of trainers: this reader, which counts what is left out."""
        rest = self._numbers[first:]
        self.left_out -= self._skipped(rest[0], self.trainers) if rest else 0
        self._divide(rest[0] if rest else len(self._sizes), trainers)
        return self

    def _skipped(self, first: int, trainers: int) -> int:
        """Samples of the batches from one on that so many trainers cannot share."""
        return sum(size for size in self._sizes[first:] if is_left_out(size, max(self._sizes), trainers))

    def _divide(self, first: int, trainers: int) -> None:
        """Begin with a batch, among so many trainers."""
        self.trainers = trainers
        self.left_out += self._skipped(first, trainers)
        self._numbers = [
            number for number, size in enumerate(self._sizes)
            if number >= first and not is_left_out(size, max(self._sizes), trainers)
        ]  # fmt: skip


class Training:
    """A training that an engine runs in a thread of this process; all methods return at once but `wait`.

    Args:
        transpiler: after its `transpile`.
        shares: divides the batches.
        watch: names of the variables to fetch.
        engine: ``"local"`` for threads of this process, ``"ray"`` for processes.
        address: of a Ray cluster; None for this machine.
        initial: see `LocalEngine`.

    Attributes:
        left: whether the caller has stopped waiting, so that nobody has seen the end.
        steps: for each trainer step -> the means of the watched values.

    Example:
        >>> x, y = fluid.layers.data("x", [2]), fluid.layers.data("y", [1])
        >>> start = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(0.0))
        >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1, param_attr=start), y))
        >>> ops, pairs = fluid.optimizer.SGD(0.5).minimize(loss)
        >>> t = fluid.DistributeTranspiler(); t.transpile(0, pservers="ps:0,ps:1", trainers=2)
        >>> batch = {"x": np.eye(2, dtype="float32"), "y": np.ones((2, 1), "float32")}
        >>> training = Training(t, Shares([batch] * 3, dict, 2), [loss.name]); training.start()
        >>> training.wait(), training.values["w"].shape
        (True, (2, 1))
        >>> [role.name for role in training.roles()]
        ['trainer0', 'trainer1', 'pserver0', 'pserver1']
    """

    def __init__(
        self, transpiler: DistributeTranspiler, shares: Shares, watch: Sequence[str] = (), engine: str = "local",
        address: str | None = None, initial: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if engine not in ENGINES:
            raise OpValueError(
                f"There is no engine {engine!r}.", expected=" or ".join(ENGINES), received=engine,
                hint="local runs threads of this process, ray processes.",
            )  # fmt: skip
        if address is not None and engine != "ray":
            raise OpValueError(
                "Only Ray's engine has an address.", expected="engine ray", received=f"{address} and engine {engine}",
                hint="leave the address out, or choose the engine ray.",
            )  # fmt: skip
        self.transpiler, self.shares, self.watch = transpiler, shares, list(watch)
        self.engine: LocalEngine | RayEngine = (
            LocalEngine(transpiler, initial=initial)
            if engine == "local"
            else RayEngine(transpiler, address, initial=initial)
        )
        self.left = False
        self.values: dict[str, Any] = {}
        self.error: BaseException | None = None
        self.steps: list[dict[int, list[float]]] = []
        self._members: list[int] = []  # trainers of each step
        self.seconds = 0.0
        self._traffic: dict[str, Traffic] = {}
        self._rates: dict[str, deque[tuple[float, int]]] = {}
        self._reader: Shares | _Stored = shares
        self._lock = threading.Lock()
        self._stopping, self._over, self._up = threading.Event(), threading.Event(), threading.Event()
        self._began = time.perf_counter()

    @property
    def plan(self) -> Plan:
        """The division of the program, among the trainers of now."""
        return self.engine.transpiler.plan

    @property
    def left_out(self) -> int:
        """Samples of smaller batches that could not be shared equally."""
        return self._reader.left_out

    # ---- control

    def start(self) -> None:
        """Start all roles."""
        threading.Thread(target=self._run, name="fluidnb training", daemon=True).start()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the training is over, after at most so many seconds; None without end."""
        return self._over.wait(timeout)

    def stop(self) -> None:
        """Let all trainers stop after the same step, also one that is paused; `wait` waits for it."""
        self._stopping.set()
        if isinstance(self.engine, LocalEngine) and self.engine.attachment is not None:
            self.engine.attachment.leave()

    def resize(self, trainers: int) -> None:
        """Let trainers join or leave after the running step; those with the highest numbers leave.

        Args:
            trainers: how many there are from then on.

        Raises:
            EnforceNotMet: the training is over, or there would be none, or more than Ray was started for.
            OpValueError: the batches cannot be shared equally by so many.
        """
        if self.over or self.stopped:
            raise EnforceNotMet(
                "The training is over.", expected="a training that runs", received="one that has ended",
                hint=f"begin one with {trainers} trainers.",
            )  # fmt: skip
        if trainers > 0 and self.shares.largest % trainers:
            raise OpValueError(
                f"A batch of {self.shares.largest} cannot be shared equally by {trainers} trainers.",
                expected=f"a divisor of {self.shares.largest}", received=trainers,
            )  # fmt: skip
        self.engine.resize(trainers)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    @property
    def over(self) -> bool:
        """Whether it is over: no role runs any more."""
        return self._over.is_set()

    def raise_error(self) -> None:
        """Raise the error of the role that failed first, if one has."""
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        """Run the engine from start to end."""
        try:
            with self.engine:
                self._up.set()
                if isinstance(self.engine, RayEngine):
                    self._reader = _Stored(self.shares)
                self.engine.train(self._reader, self.watch, self._report, self._stopping.is_set)
                self._traffic = self.engine.traffic()
                self.values = self.engine.values()
        except BaseException as error:
            self.error = error
        finally:
            self.seconds = time.perf_counter() - self._began
            self._over.set()

    def _report(self, trainer: int, step: int, values: list[Any]) -> None:
        """Keep the means of what a trainer has fetched."""
        row = [float(np.mean(value)) for value in values]
        with self._lock:
            self.steps += [{} for _ in range(len(self.steps), trainer + 1)]
            rows = self.steps[trainer]
            for later in [at for at in rows if at >= step]:  # of a training that went back to a checkpoint
                del rows[later]
            rows[step] = row
            del self._members[step + 1 :]
            self._members += [self.plan.trainers] * (step + 1 - len(self._members))

    # ---- state

    def elapsed(self) -> float:
        """Seconds since the start, until the end."""
        return self.seconds if self.over else time.perf_counter() - self._began

    def losses(self, first: int = 0) -> list[list[float]]:
        """The means over the trainers of each watched value, for each step from ``first`` that all have finished."""
        with self._lock:
            steps = [[rows[step] for rows in self.steps if step in rows] for step in range(first, len(self._members))]
            done = takewhile(lambda at: len(at[0]) >= at[1], zip(steps, self._members[first:], strict=True))
            return [[sum(values) / len(values) for values in zip(*rows, strict=True)] for rows, _ in done]

    def roles(self) -> list[RoleState]:
        """The state of every role: trainers, then servers."""
        if not self.over and self._up.is_set():
            self._traffic.update(self.engine.traffic())
        rows = []
        for number in range(self.plan.trainers):
            role = f"trainer:{number}"
            traffic = self._traffic.get(role, Traffic())
            flows = list(traffic.flows.values())
            mine = self.steps[number] if number < len(self.steps) else {}
            newest = mine[max(mine)] if mine else []
            name = f"trainer{number}"
            rows.append(RoleState(
                name, self._state(name, traffic), traffic.steps, self._rate(role, traffic.samples),
                sum(f.sent for f in flows), sum(f.received for f in flows), sum(f.seconds for f in flows),
                dict(zip(self.watch, newest, strict=False)),
            ))  # fmt: skip
        for number, endpoint in enumerate(self.plan.endpoints):
            flows = [t.flows[endpoint] for t in self._traffic.values() if endpoint in t.flows]
            name = f"pserver{number}"
            rows.append(RoleState(
                name, self._state(name, None), None, None, sum(f.received for f in flows),
                sum(f.sent for f in flows), sum(f.seconds for f in flows),
            ))  # fmt: skip
        return rows

    def picture(self) -> RolesPicture:
        """The roles with the numbers of this run."""
        states, names = self.roles(), {key: name for name, key in role_keys(self.plan).items()}
        flows = {
            (names[trainer], names[endpoint]): Flow(flow.sent, flow.received, flow.seconds)
            for trainer, traffic in self._traffic.items() if trainer in names  # others have left
            for endpoint, flow in traffic.flows.items()
        }  # fmt: skip
        return read_roles(self.engine.transpiler, states, flows)

    def throughput(self) -> float:
        """Samples per second of all trainers since the start."""
        return sum(t.samples for t in self._traffic.values()) / max(self.elapsed(), 1e-9)

    def _state(self, name: str, traffic: Traffic | None) -> str:
        if self.over:
            return "ended" if self.error is None else "failed"
        attachment = self.engine.attachment if isinstance(self.engine, LocalEngine) else None
        if attachment is not None and attachment.name == name and attachment.is_paused:
            return "paused"
        started = self._up.is_set() if traffic is None else traffic.steps > 0
        return "running" if started else "starting"

    def _rate(self, role: str, samples: int) -> float:
        """Samples per second, lately."""
        now = self.elapsed()
        if self.over:
            return samples / max(now, 1e-9)
        seen = self._rates.setdefault(role, deque([(0.0, 0)]))
        seen.append((now, samples))
        while len(seen) > 2 and now - seen[1][0] > _WINDOW:
            seen.popleft()
        began, count = seen[0]
        return (samples - count) / max(now - began, 1e-9)


def endpoints(count: int) -> str:
    """Names for servers of a training, as `DistributeTranspiler.transpile` takes them.

    Example:
        >>> endpoints(2)
        'pserver:0,pserver:1'
    """
    if count < 1:
        raise EnforceNotMet("A training needs a parameter server.", expected="1 or more", received=count)
    return ",".join(f"pserver:{number}" for number in range(count))
