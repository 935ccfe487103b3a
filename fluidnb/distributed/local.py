"""LocalEngine: trainers and parameter servers as threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from fluidnb.distributed.connection import Connection
from fluidnb.distributed.shard import Shard
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.op import engine
from fluidnb.program import Program
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.scope import Scope
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.transpiler.distribute.plan import Plan
from fluidnb.values.place import CPUPlace, Place

#: One batch: name of a data variable -> array.
Feed = Mapping[str, Any]
#: Gives the batches of one trainer, by its number.
Reader = Callable[[int], Iterable[Feed]]


class LocalEngine:
    """Runs the programs of a `DistributeTranspiler` in threads of this process; results are the same in every run.

    Use it in a ``with``: the servers start when it begins and end with it.

    Args:
        transpiler: after its `transpile`.
        place: where all programs run; None for the CPU.

    Attributes:
        scopes: role (``trainer:0``, an endpoint) -> its scope.

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

    def __init__(self, transpiler: DistributeTranspiler, place: Place | None = None) -> None:
        self.transpiler, self.plan = transpiler, transpiler.plan
        self.place: Place = CPUPlace() if place is None else place
        plan = self.plan
        self.shards = {endpoint: Shard(endpoint, plan.trainers, plan.sync) for endpoint in plan.endpoints}
        self.connections = [Connection(number, plan.sync, self._call) for number in range(plan.trainers)]
        roles = [*plan.endpoints, *(f"trainer:{number}" for number in range(plan.trainers))]
        self.scopes = {role: Scope() for role in roles}
        self._threads: list[threading.Thread] = []
        self._errors: list[tuple[str, BaseException]] = []

    # ---- fluidnb.op.engine.Engine

    def trainer(self, number: int) -> Connection:
        """The connection of a trainer."""
        return self.connections[number]

    def server(self, endpoint: str) -> Shard:
        """The connection of a parameter server."""
        return self.shards[endpoint]

    def _call(self, endpoint: str, method: str, *args: Any, **check: Callable[[], None]) -> Any:
        shard = self.shards.get(endpoint)
        if shard is None:
            raise EnforceNotMet(
                f"There is no parameter server {endpoint}.", expected=", ".join(self.shards), received=endpoint,
                hint="the program was transpiled for other servers: call transpile again for all roles.",
            )  # fmt: skip
        return getattr(shard, method)(*args, **check)

    # ---- roles

    def __enter__(self) -> LocalEngine:
        self.transpiler.check_unchanged()
        engine.attach(self, self.plan.endpoints)
        for endpoint in self.plan.endpoints:
            self._start(endpoint, self._serve, endpoint)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for shard in self.shards.values():
            shard.end() if error is None else shard.fail(error)
        for thread in self._threads:
            thread.join()
        engine.detach(self)
        if error is None:
            self._raise_first()

    def _start(self, role: str, function: Callable[..., None], *args: Any) -> threading.Thread:
        """Start the thread of a role; its error stops all others."""

        def body() -> None:
            try:
                function(*args)
            except BaseException as e:
                self._errors.append((role, e))
                for shard in self.shards.values():
                    shard.fail(e)

        thread = threading.Thread(target=body, name=f"fluidnb {role}", daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _raise_first(self) -> None:
        """Raise the error of the role that failed first."""
        if self._errors:
            _, error = self._errors[0]
            raise error

    def _serve(self, endpoint: str) -> None:
        main, startup = self.transpiler.get_pserver_programs(endpoint)
        self._run(endpoint, startup)
        self._run(endpoint, main)

    def _run(self, role: str, program: Program, feed: Feed | None = None, fetch_list: Sequence[Any] = ()) -> list[Any]:
        exe = Executor(self.place)
        return exe.run(program, feed=feed, fetch_list=list(fetch_list), scope=self.scopes[role])

    # ---- training

    def train(self, reader: Reader, fetch_list: Sequence[Any] = ()) -> list[list[list[Any]]]:
        """Run all trainers until their batches end.

        Args:
            reader: gives the feeds of a trainer by its number; in synchronous training as many for each.
            fetch_list: variables or names to fetch in each step.

        Returns:
            For each trainer, for each step, the fetched values.

        Raises:
            The first error of any role; all roles have stopped then.
        """
        results: list[list[list[Any]]] = [[] for _ in self.connections]
        names = [v if isinstance(v, str) else v.name for v in fetch_list]

        def work(number: int) -> None:
            role = f"trainer:{number}"
            main, startup = self.transpiler.get_trainer_programs(number)
            if self.connections[number].step == 0:
                self._run(role, startup)
            for feed in reader(number):
                results[number].append(self._run(role, main, feed, names))
            if self.plan.sync:  # the others wait for this one's next step, which does not come
                for shard in self.shards.values():
                    shard.leave(number, self.connections[number].step)

        for shard in self.shards.values():
            shard.expect_all()
        threads = [self._start(f"trainer:{n}", work, n) for n in range(len(self.connections))]
        try:
            for thread in threads:
                thread.join()
        except BaseException as e:
            for shard in self.shards.values():
                shard.fail(e)
            raise
        self._raise_first()
        for shard in self.shards.values():
            shard.settle()
        return results

    def parameters(self) -> dict[str, Any]:
        """The whole parameters as the servers have them now, float arrays by name."""
        values: dict[Any, Any] = {}
        for endpoint, shard in self.shards.items():
            names = [part.name for part in self.plan.on(endpoint)]
            values.update(shard.pull(0, max(shard.step, 0), names))
            for table in self.plan.tables:
                values[table, endpoint] = shard.pull(0, max(shard.step, 0), [table])[table]
        return whole_parameters(self.plan, values)


def whole_parameters(plan: Plan, values: Mapping[Any, Any]) -> dict[str, Any]:
    """Parameters put together, by name.

    Args:
        values: name of a slice -> array; (table, endpoint) -> the rows that a server keeps.
    """
    whole = {name: np.concatenate([values[part.name] for part in parts]) for name, parts in plan.slices.items()}
    for name, table in plan.tables.items():
        parts = [values[name, endpoint] for endpoint in plan.endpoints]
        whole[name] = np.empty((table.height, table.width), parts[0].value.array.dtype)
        for part in parts:
            whole[name][part.rows_] = part.value.array
    return whole


def split_batches(feeds: Iterable[Feed], trainers: int) -> Reader:
    """A reader that gives each trainer its share of the rows of every batch.

    Args:
        feeds: whole batches, arrays with as many rows as the number of trainers divides.
        trainers: how many there are.

    Example:
        >>> reader = split_batches([{"x": np.arange(4)}], 2)
        >>> [feed["x"] for feed in reader(1)]
        [array([2, 3])]
    """
    whole = list(feeds)

    def reader(number: int) -> Iterable[Feed]:
        for feed in whole:
            share = {}
            for name, value in feed.items():
                rows = len(value)
                if rows % trainers:
                    raise OpValueError(
                        f"A batch of {rows} rows cannot be shared equally by {trainers} trainers.",
                        expected=f"a multiple of {trainers}", received=rows, hint="drop the last, smaller batch.",
                    )  # fmt: skip
                share[name] = value[number * rows // trainers : (number + 1) * rows // trainers]
            yield share

    return reader
