"""Collective training by processes of Ray: an actor for each trainer, and one where they meet."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fluidnb.distributed.connection import Call, Connection
from fluidnb.distributed.group import Group
from fluidnb.distributed.local import Reader
from fluidnb.distributed.roles import this_process
from fluidnb.distributed.shard import headline
from fluidnb.distributed.values import values_of
from fluidnb.errors import EnforceNotMet
from fluidnb.op import engine
from fluidnb.program import Program
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.scope import Scope
from fluidnb.values.place import CPUPlace

#: Seconds of training in one call of `MemberRole.steps`.
_TURN = 0.25
#: Seconds between two checks of all trainers.
_POLL = 0.1


class GroupRole:
    """The meeting point of the trainers: a `Group` in a process.

    Args:
        trainers: how many there are.
        deadline: seconds that they wait for each other.
    """

    def __init__(self, trainers: int, deadline: float) -> None:
        self.group = Group(trainers, deadline)

    def state(self) -> dict[str, Any]:
        """Reductions that are finished, trainers that wait, and the process."""
        return {**self.group.state(), **this_process()}

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the group."""
        return getattr(self.group, method)(*args)


class MemberRole:
    """Runs the programs of a trainer that has all parameters, some steps at a time.

    Args:
        number: of the trainer.
    """

    def __init__(self, number: int) -> None:
        self.number, self.steps_taken = number, 0
        self.exe, self.scope = Executor(CPUPlace()), Scope()
        self.connection: Connection | None = None
        self._batches: Iterator[Mapping[str, Any]] = iter(())

    def state(self) -> dict[str, Any]:
        """Training steps that are finished, and the process."""
        return {"step": self.steps_taken, **this_process()}

    def trainer(self, number: int) -> Connection:
        """See `fluidnb.op.engine.Engine`."""
        assert self.connection is not None, "prepare comes before steps"
        return self.connection

    def server(self, endpoint: str) -> Any:
        """See `fluidnb.op.engine.Engine`: there is none."""
        raise NotImplementedError("collective training has no server")

    def prepare(self, programs: Sequence[bytes], seed: int, endpoints: list[str], call: Call) -> None:
        """Get what is to be run.

        Args:
            programs: bytes of its main and of its startup program.
            seed: the programs' random seed.
            endpoints: of all trainers.
            call: reaches the group.
        """
        self.main, self.startup = (Program.parse_from_string(data) for data in programs)
        self.main.random_seed = self.startup.random_seed = seed
        self.connection = Connection(self.number, True, call)
        engine.attach(self, endpoints)

    def begin(self, reader: Callable[[int], Iterable[Mapping[str, Any]]], fetch: list[str]) -> None:
        """Get the batches of a training, and the names of variables to fetch; the parameters stay as they are."""
        self._batches, self._fetch = iter(reader(self.number)), fetch

    def steps(self) -> tuple[list[list[Any]], bool]:
        """Train for a while.

        Returns:
            The fetched values of each step, and whether the batches have ended.
        """
        if not self.scope.vars:
            self.exe.run(self.startup, scope=self.scope)
        values, end = [], time.monotonic() + _TURN
        for feed in self._batches:
            values.append(self.exe.run(self.main, feed=dict(feed), fetch_list=self._fetch, scope=self.scope))
            self.steps_taken += 1
            if time.monotonic() > end:
                return values, False
        return values, True

    def parameters(self, names: Sequence[str]) -> dict[str, Any]:
        """Parameters by name."""
        return values_of(self.scope, names)


class CollectiveTraining:
    """The actors of a collective training.

    Args:
        ray: the package.
        programs: for each trainer the bytes of its main and of its startup program.
        seed: the programs' random seed.
        members: endpoints of the trainers.
        reach: makes what calls an actor from a trainer's process, of endpoint -> actor.
        deadline: seconds that trainers wait for each other.
    """

    def __init__(
        self, ray: Any, programs: Sequence[Sequence[bytes]], seed: int, members: list[str],
        reach: Callable[[dict[str, Any]], Call], deadline: float,
    ) -> None:  # fmt: skip
        self.ray, self.members = ray, members
        count = len(members)
        group = ray.remote(num_cpus=0, max_concurrency=2 * count + 8)(GroupRole)
        member = ray.remote(num_cpus=0, max_concurrency=2)(MemberRole)
        self.group = group.remote(count, deadline)
        self.trainers = [member.remote(number) for number in range(count)]
        self._programs, self._seed, self._reach = programs, seed, reach
        self._prepared = False

    def roles(self) -> dict[str, Any]:
        """Role -> its actor."""
        return {"group": self.group, **{f"trainer:{i}": actor for i, actor in enumerate(self.trainers)}}

    def train(self, reader: Reader, fetch: list[str]) -> list[list[Any]]:
        """Run all trainers until their batches end.

        Returns:
            For each trainer, for each step, the fetched values.

        Raises:
            EnforceNotMet: a process has ended, or a trainer does not come to an all-reduce.
        """
        ray = self.ray
        results: list[list[Any]] = [[] for _ in self.trainers]
        try:
            if not self._prepared:
                call = self._reach({self.members[0]: self.group})
                ready = [
                    actor.prepare.remote(programs, self._seed, self.members, call)
                    for actor, programs in zip(self.trainers, self._programs, strict=True)
                ]
                ray.get(ready)
                self._prepared = True
            ray.get([actor.begin.remote(reader, fetch) for actor in self.trainers])
            ray.get(self.group.call.remote("expect_all"))
            running = {actor.steps.remote(): number for number, actor in enumerate(self.trainers)}
            while running:
                ready, _ = ray.wait(list(running), timeout=_POLL)
                for call in ready:
                    number = running.pop(call)
                    values, ended = self._outcome(call, number)
                    results[number] += values
                    if ended:
                        ray.get(self.group.call.remote("leave", number, len(results[number])))
                    else:
                        running[self.trainers[number].steps.remote()] = number
        except BaseException as e:
            self._fail(e)
            raise
        return results

    def _outcome(self, call: Any, number: int) -> tuple[list[Any], bool]:
        """The result of a trainer's call; raises with its name where its process has ended."""
        from ray.exceptions import RayActorError

        try:
            outcome: tuple[list[Any], bool] = self.ray.get(call)
            return outcome
        except RayActorError:
            raise EnforceNotMet(
                f"The process of trainer:{number} has ended, and every step needs all trainers.",
                expected=f"{len(self.trainers)} running trainers", received="a process that was killed or has crashed",
                hint="train again; with parameter servers (config.mode = \"pserver\") killed roles restart.",
            ) from None  # fmt: skip

    def _fail(self, error: BaseException) -> None:
        """Let no trainer wait for the others any more."""
        from ray.exceptions import RayError

        with contextlib.suppress(RayError):  # the group's process has ended, too: its callers get an error
            self.ray.get(self.group.call.remote("fail", EnforceNotMet(headline(error))), timeout=5)

    def parameters(self, names: Sequence[str]) -> dict[str, Any]:
        """Parameters as trainer 0 has them, by name."""
        values: dict[str, Any] = self.ray.get(self.trainers[0].parameters.remote(names))
        return values
