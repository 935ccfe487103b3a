"""LocalEngine: trainers and parameter servers as threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from fluidnb.debug.session import Session
from fluidnb.distributed.attachment import Attachment, attach_here, role_keys, running
from fluidnb.distributed.connection import Connection, Traffic
from fluidnb.distributed.group import DEADLINE, Group
from fluidnb.distributed.server_values import divided_values, store, trainer_names, trainer_values, whole_values
from fluidnb.distributed.shard import Shard
from fluidnb.distributed.shares import shares_of
from fluidnb.distributed.values import values_of
from fluidnb.errors import EnforceNotMet
from fluidnb.op import engine
from fluidnb.program import Program, hooks
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.run_numbers import count_from
from fluidnb.runtime.scope import Scope
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.transpiler.distribute.collective import CollectivePlan
from fluidnb.values.place import CPUPlace, Place

#: Seconds between two checks whether a debug session has stopped a role.
_POLL = 0.05

#: One batch: name of a data variable -> array.
Feed = Mapping[str, Any]
#: Gives the batches of one trainer, by its number.
Reader = Callable[[int], Iterable[Feed]]
#: ``report(trainer, step, values)``: what a trainer has fetched in a step that is over.
Report = Callable[[int, int, list[Any]], None]


def no_report(trainer: int, step: int, values: list[Any]) -> None:
    """Report nothing."""


def never() -> bool:
    """Never stop."""
    return False


class LocalEngine:
    """Runs the programs of a `DistributeTranspiler` in threads of this process; results are the same in every run.

    Use it in a ``with``: the servers start when it begins and end with it.

    Args:
        transpiler: after its `transpile`.
        place: where all programs run; None for the CPU.
        deadline: seconds that trainers of collective training wait for each other; None without end.
        initial: values to begin with in place of those of the startup program: whole arrays by the names of the
            training program.

    Attributes:
        scopes: role (``trainer:0``, an endpoint) -> its scope.
        programs: role -> the main program that it runs.
        attachment: the debug session in one of the roles, or None.

    Example:
        >>> x, y = fluid.layers.data("x", [2]), fluid.layers.data("y", [1])
        >>> start = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.0))
        >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1, param_attr=start), y))
        >>> ops, pairs = fluid.optimizer.SGD(0.5).minimize(loss)
        >>> t = fluid.DistributeTranspiler(); t.transpile(0, pservers="ps:0,ps:1", trainers=2)
        >>> half = lambda trainer: [{"x": np.eye(2, dtype="float32")[[trainer]], "y": np.ones((1, 1), "float32")}] * 2
        >>> with fluid.distributed.LocalEngine(t) as engine:
        ...     losses = engine.train(half, fetch_list=[loss])
        >>> [step[0].item() for step in losses[0]]
        [1.0, 0.25]
    """

    def __init__(
        self, transpiler: DistributeTranspiler, place: Place | None = None, deadline: float | None = DEADLINE,
        initial: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.transpiler, self.plan, self._initial = transpiler, transpiler.plan, initial or {}
        self.place: Place = CPUPlace() if place is None else place
        plan = self.plan
        self.shards: dict[str, Any] = {e: Shard(e, plan.trainers, plan.sync) for e in plan.endpoints}
        if isinstance(plan, CollectivePlan):
            self.shards = {plan.members[0]: Group(plan.trainers, deadline)}
        self._deadline = deadline
        self._wanted: int | None = None  # trainers from the next step on
        self.connections: list[Connection] = []
        self.scopes: dict[str, Scope] = {}
        self.programs: dict[str, Program] = {}
        self._startups: dict[int, Program] = {}
        self._divide()
        self.attachment: Attachment | None = None
        self._threads: list[threading.Thread] = []
        self._background = False  # whether another thread than the main one waits for the roles
        self._errors: list[tuple[str, BaseException]] = []

    def _divide(self) -> None:
        """Take the programs of all roles; a role that is new gets a scope, and a trainer a connection."""
        plan, transpiler = self.plan, self.transpiler
        self.programs = {endpoint: transpiler.get_pserver_program(endpoint) for endpoint in plan.endpoints}
        for number in range(plan.trainers):
            self.programs[f"trainer:{number}"], self._startups[number] = transpiler.get_trainer_programs(number)
        for role in self.programs:
            self.scopes.setdefault(role, Scope())
        for number in range(len(self.connections), plan.trainers):
            self.connections.append(Connection(number, plan.sync, self._call))

    # ---- fluidnb.op.engine.Engine

    def trainer(self, number: int) -> Connection:
        """The connection of a trainer."""
        return self.connections[number]

    def server(self, endpoint: str) -> Shard:
        """The connection of a parameter server."""
        shard: Shard = self.shards[endpoint]
        return shard

    def _call(self, endpoint: str, method: str, *args: Any, **check: Callable[[], None]) -> Any:
        shard = self.shards.get(endpoint)
        if shard is None:
            raise EnforceNotMet(
                f"No role of this training has the endpoint {endpoint}.", expected=", ".join(self.shards),
                received=endpoint, hint="the program was transpiled for others: call transpile again for all roles.",
            )  # fmt: skip
        return getattr(shard, method)(*args, **check)

    # ---- roles

    def __enter__(self) -> LocalEngine:
        self.transpiler.check_unchanged()
        engine.attach(self, self.plan.logical)
        self._background = threading.current_thread() is not threading.main_thread()
        running.append(self)
        for endpoint in self.plan.endpoints:
            self._start(endpoint, self._serve, endpoint)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.attachment is not None:
            self.attachment.leave()
        for shard in self.shards.values():
            shard.end() if error is None else shard.fail(error)
        try:
            for thread in self._threads:
                thread.join()
        finally:  # Ctrl-C ends the waiting for a reader that hangs; the endpoints are free then, too
            engine.detach(self)
            running.remove(self)
        if error is None:
            self.raise_first()

    def _start(self, role: str, function: Callable[..., None], *args: Any) -> threading.Thread:
        """Start the thread of a role; its error stops all others."""

        def body() -> None:
            try:
                with engine.acting_as(role, self._background):
                    function(*args)
            except BaseException as e:
                self._errors.append((role, e))
                for shard in self.shards.values():
                    shard.fail(e)

        thread = threading.Thread(target=body, name=f"fluidnb {role}", daemon=True)
        thread.start()
        self._threads.append(thread)
        return thread

    def attach(self, session: Session, name: str) -> None:
        """Move a debug session into a role, and wait until the role is paused; see `Attachment`."""
        attach_here(self, session, name)

    def role_names(self) -> dict[str, str]:
        """Names of roles as people write them -> those in `programs`."""
        return role_keys(self.plan)

    def suspend_deadline(self, suspended: bool) -> None:
        """Let trainers wait for each other without end, while a debug session is in one of them."""
        for shard in self.shards.values():
            if isinstance(shard, Group):
                shard.suspended = suspended

    def has_ended(self, role: str) -> bool:
        """Whether a role has run and does not run any more."""
        mine = [thread for thread in self._threads if thread.name == f"fluidnb {role}"]
        return bool(mine) and not any(thread.is_alive() for thread in mine)

    def raise_first(self) -> None:
        """Raise the error of the role that failed first."""
        if self._errors:
            _, error = self._errors[0]
            raise error

    def _serve(self, endpoint: str) -> None:
        self._run(endpoint, self.transpiler.get_startup_program(endpoint))
        store(self.scopes[endpoint], divided_values(self.transpiler, endpoint, self._initial))
        self._run(endpoint, self.programs[endpoint])
        while self.shards[endpoint].begins_again():
            self._run(endpoint, self.programs[endpoint])

    def _run(self, role: str, program: Program, feed: Feed | None = None, fetch_list: Sequence[Any] = ()) -> list[Any]:
        exe = Executor(self.place)
        return exe.run(program, feed=feed, fetch_list=list(fetch_list), scope=self.scopes[role])

    # ---- training

    def train(
        self, reader: Reader, fetch_list: Sequence[Any] = (), report: Report = no_report,
        stop: Callable[[], bool] = never,
    ) -> list[list[Any]]:  # fmt: skip
        """Run all trainers until their batches end.

        Args:
            reader: gives the feeds of a trainer by its number; in synchronous training as many for each.
            fetch_list: variables or names to fetch in each step.
            report: called after each step of a trainer, in its thread.
            stop: called before each step; once it gives True, all trainers stop after the same number of steps.

        Returns:
            For each trainer, for each step, the fetched values; None where it had not joined, or had left.

        Raises:
            The first error of any role; all roles have stopped then.
        """
        results: list[list[Any]] = [[] for _ in self.connections]
        names = [v if isinstance(v, str) else v.name for v in fetch_list]
        done = 0
        while True:
            gate = _Gate(self.plan.trainers, stop, lambda: self._wanted is not None)
            self._train(reader, names, report, gate, results)
            taken, done = gate.taken(), done + gate.taken()
            if self._wanted is None or gate.stopped:
                break
            wanted, self._wanted = self._wanted, None
            reader = reader_among(reader, wanted, taken)
            self._change(wanted)
            results += [[] for _ in range(len(results), len(self.connections))]
            for row in results:
                row += [None] * (done - len(row))
        for row in results:
            row += [None] * (done - len(row))
        return results

    def resize(self, trainers: int) -> None:
        """Let trainers join or leave between two steps of `train`; returns at once, and from any thread.

        Those with the highest numbers leave. One that joins gets the parameters and a share of the batches that
        follow, for which the reader must be that of `split_batches`.

        Args:
            trainers: how many there are from then on.
        """
        self._wanted = checked_count(trainers)

    def _change(self, trainers: int) -> None:
        """Divide the program among another number of trainers; no trainer runs meanwhile."""
        if self.attachment is not None:
            self.attachment.leave()
        before, step = len(self.connections), self.connections[0].step
        first = values_of(self.scopes["trainer:0"], trainer_names(self.plan))
        self.transpiler = self.transpiler.among(trainers)
        self.plan = self.transpiler.plan
        for number in range(trainers, before):
            del self.scopes[f"trainer:{number}"]
        del self.connections[trainers:]
        self._divide()
        if isinstance(self.plan, CollectivePlan):
            self.shards = {self.plan.members[0]: Group(trainers, self._deadline)}
        for endpoint in self.plan.endpoints:
            self.shards[endpoint].change(trainers)
        engine.attach(self, self.plan.logical)
        engine.detach(self, but=self.plan.logical)  # servers may begin again now, and look for the training
        for connection in self.connections[before:]:
            connection.join(0, step)
            role = f"trainer:{connection.number}"
            if not isinstance(self.plan, CollectivePlan):  # where the startup program needs all trainers
                with engine.acting_as(role, self._background):
                    self._run(role, self._startups[connection.number])
            store(self.scopes[role], first)
        for number in range(trainers):
            count_from(self.programs[f"trainer:{number}"], self.scopes[f"trainer:{number}"], step)

    def _train(
        self, reader: Reader, names: list[str], report: Report, gate: _Gate, results: list[list[Any]]
    ) -> None:  # fmt: skip
        """Run all trainers until their batches end, or the gate ends them."""

        def work(number: int) -> None:
            role, connection = f"trainer:{number}", self.connections[number]
            if connection.step == 0:
                self._run(role, self._startups[number])
                store(self.scopes[role], trainer_values(self.plan, self._initial))
            for feed in gate.batches(number, reader(number)):
                connection.begin_step()
                results[number].append(self._run(role, self.programs[role], feed, names))
                connection.count(feed)
                report(number, len(results[number]) - 1, results[number][-1])
            if self.plan.sync:  # the others wait for this one's next step, which does not come
                for shard in self.shards.values():
                    shard.leave(number, connection.step)

        for shard in self.shards.values():
            shard.expect_all()
        if hooks.training_begins is not None:
            hooks.training_begins(self)
        threads = [self._start(f"trainer:{n}", work, n) for n in range(len(self.connections))]
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(_POLL)
                    if self.attachment is not None:
                        self.attachment.serve()
        except BaseException as e:
            for shard in self.shards.values():
                shard.fail(e)
            raise
        self.raise_first()
        for shard in self.shards.values():
            shard.settle()

    def traffic(self) -> dict[str, Traffic]:
        """The work of each trainer so far, by role."""
        return {f"trainer:{number}": connection.traffic for number, connection in enumerate(self.connections)}

    def values(self) -> dict[str, Any]:
        """All that the servers keep, parameters, accumulators and learning rates: whole arrays by name.

        In collective mode what trainer 0 keeps.
        """
        if isinstance(self.plan, CollectivePlan):
            return values_of(self.scopes["trainer:0"], trainer_names(self.plan))
        return whole_values(self.transpiler, {endpoint: shard.newest() for endpoint, shard in self.shards.items()})

    def parameters(self) -> dict[str, Any]:
        """The whole parameters as the servers have them now, by name; in collective mode those of trainer 0.

        Parameters that no optimizer updates, such as batch_norm's running averages, are those of trainer 0, as in
        Fluid.
        """
        scope = self.scopes["trainer:0"]
        if isinstance(self.plan, CollectivePlan):
            return values_of(scope, [*self.plan.gradients, *self.plan.kept])
        values = self.values()
        kept = values_of(scope, self.plan.kept)
        return {name: values[name] for name in (*self.plan.slices, *self.plan.tables)} | kept


class _Gate:
    """Gives trainers their batches, and ends them all after the same number of steps.

    Args:
        trainers: how many there are.
        stop: whether the training stops.
        pause: whether it pauses, for a change.

    Attributes:
        stopped: whether ``stop`` has ended it.
    """

    def __init__(self, trainers: int, stop: Callable[[], bool], pause: Callable[[], bool]) -> None:
        self._stop, self._pause, self._taken, self.stopped = stop, pause, [0] * trainers, False
        self._last: int | None = None
        self._lock = threading.Lock()

    def taken(self) -> int:
        """Batches of the trainer that has taken most."""
        return max(self._taken)

    def batches(self, number: int, feeds: Iterable[Feed]) -> Iterator[Feed]:
        """The batches of a trainer, until the end."""
        left = iter(feeds)
        while True:
            with self._lock:
                if self._last is None:
                    self.stopped = self._stop()
                    if self.stopped or self._pause():
                        self._last = max(self._taken)
                if self._last is not None and self._taken[number] >= self._last:
                    return
                self._taken[number] += 1
            feed = next(left, None)
            if feed is None:
                with self._lock:
                    self._taken[number] -= 1
                return
            yield feed


def share_of(feed: Feed, trainers: int, trainer: int) -> Feed:
    """The rows or sequences of a batch that a trainer gets.

    Example:
        >>> share_of({"x": np.arange(4)}, 2, 1)
        {'x': array([2, 3])}
    """
    return {name: shares_of(name, value, trainers, "trainers")[trainer] for name, value in feed.items()}


class SharedBatches:
    """Batches of which each trainer gets its share of the rows: the reader of `split_batches`.

    Args:
        feeds: whole batches.
        trainers: how many there are.
    """

    def __init__(self, feeds: Iterable[Feed], trainers: int) -> None:
        self.feeds, self.trainers = list(feeds), trainers

    def __call__(self, trainer: int) -> Iterator[Feed]:
        """The batches of a trainer."""
        return (share_of(feed, self.trainers, trainer) for feed in self.feeds)

    def among(self, trainers: int, first: int) -> SharedBatches:
        """The batches from one on, shared by another number of trainers."""
        return SharedBatches(self.feeds[first:], trainers)


def reader_among(reader: Reader, trainers: int, first: int) -> Reader:
    """A reader that shares what follows among another number of trainers.

    Raises:
        EnforceNotMet: the reader is for one number only.
        OpValueError: the next batch cannot be shared equally.
    """
    among = getattr(reader, "among", None)
    if among is None:
        raise EnforceNotMet(
            "This reader cannot share its batches among another number of trainers.",
            expected="the reader of split_batches", received=getattr(reader, "__name__", type(reader).__name__),
            hint="fluid.distributed.split_batches(feeds, trainers) makes one from whole batches.",
        )  # fmt: skip
    other: Reader = among(trainers, first)
    next(iter(other(0)), None)
    return other


def checked_count(trainers: int) -> int:
    """A number of trainers.

    Raises:
        EnforceNotMet: it is none.
    """
    if trainers < 1:
        raise EnforceNotMet(
            "A training needs a trainer.", expected="1 or more", received=trainers, hint="stop= of train ends it."
        )
    return trainers


def split_batches(feeds: Iterable[Feed], trainers: int) -> SharedBatches:
    """A reader that gives each trainer its share of the rows of every batch.

    Args:
        feeds: whole batches, arrays or LoDTensors with as many rows or sequences as the number of trainers divides.
        trainers: how many there are.

    Example:
        >>> reader = split_batches([{"x": np.arange(4)}], 2)
        >>> [feed["x"] for feed in reader(1)]
        [array([2, 3])]
    """
    return SharedBatches(feeds, trainers)
