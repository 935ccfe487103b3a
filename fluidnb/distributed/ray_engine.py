"""RayEngine: trainers and parameter servers as actors of Ray, on this machine or on a cluster."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import fluidnb
from fluidnb.distributed.connection import Traffic
from fluidnb.distributed.group import DEADLINE
from fluidnb.distributed.local import Reader, Report, never, no_report
from fluidnb.distributed.ray_collective import CollectiveTraining
from fluidnb.distributed.roles import ServerRole, TrainerRole, Unprepared
from fluidnb.distributed.server_values import divided_values, whole_values
from fluidnb.distributed.shard import Rejoin
from fluidnb.errors import EnforceNotMet
from fluidnb.extras import require
from fluidnb.program import Program
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.transpiler.distribute.collective import CollectivePlan

#: Seconds between two checks of all roles.
_POLL = 0.1


def _ray() -> Any:
    """The package ray."""
    return require("ray", "RayEngine")


class _Reach:
    """Calls servers from a trainer's process; waits in short turns, so that a run can be stopped."""

    def __init__(self, servers: dict[str, Any]) -> None:
        self.servers = servers

    def __call__(self, endpoint: str, method: str, *args: Any, check: Callable[[], None] | None = None) -> Any:
        import ray
        from ray.exceptions import RayActorError

        answer = self.servers[endpoint].call.remote(method, *args)
        try:
            while not ray.wait([answer], timeout=_POLL)[0]:
                if check is not None:
                    check()
            return ray.get(answer)
        except RayActorError:
            raise Rejoin(
                f"{endpoint} does not answer.", expected="a running server", received="a process that has ended",
                hint="a trainer restarts from the newest checkpoint.",
            ) from None  # fmt: skip


def _reach(address: str) -> None:
    """Raise unless something listens at the address of a cluster, ``HOST:PORT`` or ``ray://HOST:PORT``."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as e:
        raise EnforceNotMet(
            f"No Ray cluster answers at {address}.", expected="HOST:PORT of a running cluster", received=str(e)[:100],
            hint="`ray status --address HOST:PORT` checks one; without address= Ray starts on this machine.",
        ) from None  # fmt: skip


def _bytes(programs: Sequence[Program]) -> list[bytes]:
    """Descriptions of programs, to be sent."""
    return [program.desc.serialize_to_string() for program in programs]


class RayEngine:
    """Runs the programs of a `DistributeTranspiler` in processes, by Ray; killed processes restart.

    Use it in a ``with``. Each server writes checkpoints. A process that ends is started again by Ray: all servers go
    back to the newest step of which every one has a checkpoint, and trainers continue from there. Batches must be the
    same at each call of the reader, so that the result is that of a run without faults.

    Args:
        transpiler: after its `transpile`.
        address: of a Ray cluster; None starts Ray on this machine, where it listens as Ray is configured.
        checkpoints: folder, which all servers reach; None for a temporary one.
        every: steps between two checkpoints.
        initial: values to begin with in place of those of the startup program: whole arrays by the names of the
            training program.

    Attributes:
        events: recoveries as text, with the step that training went back to.
    """

    def __init__(
        self, transpiler: DistributeTranspiler, address: str | None = None, checkpoints: str | Path | None = None,
        every: int = 1, initial: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.transpiler, self.plan, self.address, self.every = transpiler, transpiler.plan, address, every
        self._initial = initial or {}
        self.events: list[str] = []
        self.generation = -1
        self._folder = str(checkpoints) if checkpoints is not None else None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._servers: dict[str, Any] = {}
        self._trainers: list[Any] = []
        self._prepared: set[int] = set()  # trainers that know their programs
        self._started = False
        self._collective: CollectiveTraining | None = None

    # ---- processes

    def __enter__(self) -> RayEngine:
        ray = _ray()
        if not ray.is_initialized():
            here: dict[str, Any] = {"include_dashboard": False}
            if self.address is not None:
                _reach(self.address)  # Ray itself tries for minutes
                here = {"address": self.address}
            ray.init(log_to_driver=False, logging_level="ERROR", **here)
            self._started = True
        if self._folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="fluidnb-")
            self._folder = self._temporary.name
        try:
            self._start(ray)
        except BaseException as e:
            self.__exit__(type(e), e, None)
            raise
        return self

    def _start(self, ray: Any) -> None:
        lasting = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": 0}
        server = ray.remote(**lasting, max_concurrency=2 * self.plan.trainers + 8)(ServerRole)
        trainer = ray.remote(**lasting, max_concurrency=2)(TrainerRole)
        for endpoint in self.plan.endpoints:
            self._servers[endpoint] = server.remote(endpoint, self._folder, self.every)
        if isinstance(self.plan, CollectivePlan):
            programs = [_bytes(self.transpiler.get_trainer_programs(n)) for n in range(self.plan.trainers)]
            seed, members = self.plan.program.random_seed, self.plan.members
            self._collective = CollectiveTraining(ray, programs, seed, members, _Reach, DEADLINE)
        else:
            self._trainers = [trainer.remote(n, self._folder, self.every) for n in range(self.plan.trainers)]
        for role, actor in self._roles().items():
            version = ray.get(actor.version.remote())
            if version != fluidnb.__version__:
                raise EnforceNotMet(
                    f"{role} runs another version of fluidnb.", expected=fluidnb.__version__, received=version,
                    hint="install the same version on all machines of the cluster.",
                )  # fmt: skip

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ray = _ray()
        for actor in self._roles().values():
            ray.kill(actor)
        self._servers, self._trainers, self._prepared, self.generation = {}, [], set(), -1
        self._collective = None
        if self._started:
            ray.shutdown()
            self._started = False
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = self._folder = None

    def _roles(self) -> dict[str, Any]:
        """Role -> its actor."""
        if self._collective is not None:
            return self._collective.roles()
        return {**self._servers, **{f"trainer:{i}": actor for i, actor in enumerate(self._trainers)}}

    # ---- training

    def train(
        self, reader: Reader, fetch_list: Sequence[Any] = (), report: Report = no_report,
        stop: Callable[[], bool] = never,
    ) -> list[list[Any]]:  # fmt: skip
        """Run all trainers until their batches end.

        Args:
            reader: gives the feeds of a trainer by its number, the same at each call; it is sent to the processes.
            fetch_list: variables or names to fetch in each step.
            report: called for each step of a trainer, some time after it.
            stop: called between calls of trainers; once it gives True, all stop after the same number of steps.

        Returns:
            For each trainer, for each step, the fetched values; None for a step that a killed trainer did not report.

        Raises:
            EnforceNotMet: a role has failed, or none has finished a step for `DEADLINE` seconds.
        """
        ray = _ray()
        names = [v if isinstance(v, str) else v.name for v in fetch_list]
        if self._collective is not None:
            return self._collective.train(reader, names)
        results: list[dict[int, Any]] = [{} for _ in self._trainers]
        running: dict[Any, int] = {}
        over: set[int] = set()
        reached, stopping = [0] * len(self._trainers), False  # the steps that each is known to have finished
        last = time.monotonic()
        while len(over) < len(self._trainers):
            step = self._recover(ray)
            if not stopping and stop():
                stopping = True
            if stopping and not running and all(n in over or at == max(reached) for n, at in enumerate(reached)):
                break
            if step is not None:
                for number in sorted(set(range(len(self._trainers))) - set(running.values()) - over):
                    # Others may wait for this trainer's next step, and end after it.
                    until = max(max(reached), reached[number] + bool(running)) if stopping else None
                    if until == reached[number] or not self._prepare(ray, number):
                        continue
                    call = self._trainers[number].steps.remote(self.generation, step, reader, names, until)
                    running[call] = number
            ready, _ = ray.wait(list(running), timeout=_POLL) if running else ([], None)
            for call in ready:
                number = running.pop(call)
                outcome = self._outcome(ray, call, number)
                if outcome is None:
                    continue
                last = time.monotonic()
                first, values, ended = outcome
                results[number].update(enumerate(values, first))
                reached[number] = first + len(values)
                for at, row in enumerate(values, first):
                    report(number, at, row)
                if ended:
                    over.add(number)
            if time.monotonic() - last > DEADLINE:
                raise EnforceNotMet(
                    f"No trainer has finished a step for {DEADLINE:g} s.", expected="progress of every trainer",
                    received="; ".join(f"{name}: {state}" for name, state in self._states(ray).items()),
                    hint="the server that waits names the trainers whose gradients it has (complete).",
                )  # fmt: skip
        count = max((max(row, default=-1) for row in results), default=-1) + 1
        return [[row.get(step) for step in range(count)] for row in results]

    def _prepare(self, ray: Any, number: int) -> bool:
        """Give a trainer its programs if its process is new; whether it answers."""
        from ray.exceptions import RayActorError

        if number in self._prepared:
            return True
        plan, programs = self.plan, _bytes(self.transpiler.get_trainer_programs(number))
        seed, reach = plan.program.random_seed, _Reach(self._servers)
        try:
            ray.get(self._trainers[number].prepare.remote(programs, seed, plan.endpoints, plan.sync, reach))
        except RayActorError:
            return False
        self._prepared.add(number)
        return True

    def _outcome(self, ray: Any, call: Any, number: int) -> tuple[int, list[Any], bool] | None:
        """The result of a call of a trainer; None where it has to be called again."""
        from ray.exceptions import RayActorError

        try:
            outcome: tuple[int, list[Any], bool] = ray.get(call)
            return outcome
        except Rejoin as e:
            if isinstance(e, Unprepared):
                self._forget(number)
            return None
        except RayActorError:
            self._forget(number)
            return None

    def _forget(self, number: int) -> None:
        """The process of a trainer is new: it needs its programs."""
        self._prepared.discard(number)
        self.events.append(f"trainer:{number} has restarted")

    def _states(self, ray: Any) -> dict[str, Any]:
        """State of each server; None for one that does not answer."""
        from ray.exceptions import RayActorError

        states = {}
        for endpoint, actor in self._servers.items():
            try:
                states[endpoint] = ray.get(actor.state.remote(), timeout=30)
            except RayActorError:
                states[endpoint] = None
        return states

    def _recover(self, ray: Any) -> int | None:
        """Begin a new generation where a server is new; gives the step to join at, None while servers start."""
        from ray.exceptions import RayActorError

        states = self._states(ray)
        if any(state is None for state in states.values()):
            return None
        for state in states.values():
            if state["error"] is not None:
                raise state["error"]
        if all(state["generation"] == self.generation for state in states.values()):
            steps = [state["step"] for state in states.values()]
            return None if None in steps else min(steps)
        common = set.intersection(*({0, *state["checkpoints"]} for state in states.values()))
        step = max(common) if self.generation >= 0 else 0
        self.generation += 1
        if self.generation:
            self.events.append(f"all servers went back to step {step}")
        plan = self.plan
        begun = [
            actor.begin.remote(
                self.generation, step, _bytes(self.transpiler.get_pserver_programs(endpoint)),
                plan.program.random_seed, plan.trainers, plan.sync,
                divided_values(self.transpiler, endpoint, self._initial),
            )
            for endpoint, actor in self._servers.items()
        ]  # fmt: skip
        with contextlib.suppress(RayActorError):  # it has ended meanwhile: the next check sees it
            ray.get(begun)
        return None

    def traffic(self) -> dict[str, Traffic]:
        """The work of each trainer's process so far, by role; without those that do not answer."""
        ray = _ray()
        answers = {f"trainer:{number}": actor.traffic.remote() for number, actor in enumerate(self._trainers)}
        ready, _ = ray.wait(list(answers.values()), num_returns=len(answers), timeout=_POLL)
        there = {}
        for role, answer in answers.items():
            with contextlib.suppress(ray.exceptions.RayActorError):
                if answer in ready:
                    there[role] = ray.get(answer)
        return there

    def values(self) -> dict[str, Any]:
        """All that the servers keep, parameters, accumulators and learning rates: whole arrays by name."""
        ray = _ray()
        newest = {endpoint: ray.get(actor.call.remote("newest")) for endpoint, actor in self._servers.items()}
        return whole_values(self.transpiler, newest)

    def parameters(self) -> dict[str, Any]:
        """The whole parameters as the servers have them now, by name; in collective mode those of trainer 0.

        Parameters that no optimizer updates, such as batch_norm's running averages, are those of trainer 0, as in
        Fluid. After a restart all trainers continue from these.
        """
        if self._collective is not None and isinstance(self.plan, CollectivePlan):
            return self._collective.parameters([*self.plan.gradients, *self.plan.kept])
        values = self.values()
        kept: dict[str, Any] = _ray().get(self._trainers[0].values.remote(self.plan.kept))
        return {name: values[name] for name in (*self.plan.slices, *self.plan.tables)} | kept
