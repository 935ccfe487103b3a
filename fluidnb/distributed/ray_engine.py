"""RayEngine: trainers and parameter servers as actors of Ray, on this machine or on a cluster."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import fluidnb
from fluidnb.debug.session import Session
from fluidnb.distributed.attachment import role_keys, running
from fluidnb.distributed.checkpoints import Checkpoints
from fluidnb.distributed.connection import Connection, Traffic
from fluidnb.distributed.local import Feed, Reader, Report, checked_count, never, no_report, reader_among
from fluidnb.distributed.ray_start import running_ray
from fluidnb.distributed.remote_role import RemoteRole
from fluidnb.distributed.roles import GroupRole, ServerRole, TrainerRole, Unprepared
from fluidnb.distributed.running_values import running_names
from fluidnb.distributed.server_values import divided_values, trainer_names, trainer_values, whole_values
from fluidnb.distributed.shard import Rejoin
from fluidnb.errors import EnforceNotMet, NotFound, near
from fluidnb.op import engine
from fluidnb.program import Program
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.transpiler.distribute.collective import CollectivePlan

#: Seconds between two checks of all roles.
_POLL = 0.1
#: Seconds that a process has to start, at least.
_START = 300.0
#: Options of actors that restart.
_LASTING = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": 0}
#: Calls that a server, or the group, serves at once: trainers wait in them.
_CALLS = 128
#: The role where trainers without servers meet.
_GROUP = "group"


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


def _no_batches(trainer: int) -> Iterable[Feed]:
    """A reader without batches."""
    return ()


def _bytes(programs: Sequence[Program]) -> list[bytes]:
    """Descriptions of programs, to be sent."""
    return [program.desc.serialize_to_string() for program in programs]


class RayEngine:
    """Runs the programs of a `DistributeTranspiler` in processes, by Ray; killed processes restart.

    Use it in a ``with``. Each server writes checkpoints. A process that ends is started again by Ray: all servers go
    back to the newest step of which every one has a checkpoint, and trainers continue from there. Batches must be the
    same at each call of the reader, so that the result is that of a run without faults. With ``sync_mode=False`` each
    server goes back to its own newest checkpoint, and trainers send again what it has not seen. In collective mode
    trainer 0 writes the checkpoints; where a trainer ends, all go back to the newest one.

    Without an address, Ray starts on this machine: all its ports are bound to loopback, and every call needs a random
    token, which is in a file that this user alone may read. Roles exchange arrays, SelectedRows, names and numbers;
    programs travel as descriptions. Only the reader, and the functions of a debug session in a role, are Python
    functions, which Ray pickles in this process.

    Args:
        transpiler: after its `transpile`.
        address: of a Ray cluster, which listens where and asks for what it was started with; None for this machine.
        checkpoints: folder, which all servers reach, or all trainers; None for a temporary one.
        every: steps between two checkpoints.
        deadline: seconds after which a role that does not answer, or a step that does not end, is an error.
        resume: whether to continue from the newest common step in the folder; its batches are skipped.
        initial: values to begin with in place of those of the startup program: whole arrays by the names of the
            training program.

    Attributes:
        events: recoveries as text, with the step that training went back to.
        states: role -> its newest known step, generation, process (``pid``) and machine (``host``); None while it
            restarts. Renewed while `train` runs.
        attached: roles that a debug session is in.
        is_training: whether `train` runs.
    """

    def __init__(
        self, transpiler: DistributeTranspiler, address: str | None = None, checkpoints: str | Path | None = None,
        every: int = 1, deadline: float = 120.0, resume: bool = False, initial: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.transpiler, self.plan, self.address, self.every = transpiler, transpiler.plan, address, every
        self.deadline, self.resume, self._initial = deadline, resume, initial or {}
        self.events: list[str] = []
        self.states: dict[str, dict[str, Any] | None] = {}
        self.generation = -1
        self._folder = str(checkpoints) if checkpoints is not None else None
        self._servers: dict[str, Any] = {}
        self._trainers: list[Any] = []
        self._prepared: set[int] = set()  # trainers that know their programs
        self._preparing: dict[int, Any] = {}  # trainer -> the call that gives it its programs
        self.attached, self.is_training = 0, False
        self._course = 0  # calls of `train`
        self._calls = max(_CALLS, 2 * self.plan.trainers + 8)  # that a server answers at a time
        self._lost = False  # whether a trainer has ended without which the others cannot continue
        self._wanted: int | None = None  # trainers from the next step on
        self._changed = False  # whether their number has changed since the generation began
        self._seed = secrets.randbits(30)  # a new process draws the same numbers as the one that has ended
        self._done: dict[int, int] = {}  # trainer -> steps of finished calls of `train`
        self._asked: dict[Any, str] = {}  # call of a role's state -> the role
        self._since = 0.0  # when they were called
        self._stack = contextlib.ExitStack()

    # ---- processes

    def __enter__(self) -> RayEngine:
        self.transpiler.check_unchanged()
        try:
            if self._folder is None:
                self._folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="fluidnb-"))
                self._stack.callback(setattr, self, "_folder", None)
            elif not self.resume:
                self._refuse_old(self._folder)
            self._start(self._stack.enter_context(running_ray(self.address)))
        except BaseException as e:
            self.__exit__(type(e), e, None)
            raise
        if not self._is_collective:
            engine.attach(self, self.plan.endpoints)
            self._stack.callback(engine.detach, self)
        running.append(self)
        self._stack.callback(running.remove, self)
        return self

    def _refuse_old(self, folder: str) -> None:
        """Raise where an earlier training has left checkpoints, which this one would remove."""
        writers = ["trainer:0"] if self._is_collective else self.plan.endpoints
        steps = {writer: Checkpoints(folder, writer).steps() for writer in writers}
        if any(steps.values()):
            raise EnforceNotMet(
                f"The folder {folder} has checkpoints of an earlier training.", expected="an empty folder",
                received="; ".join(f"{name}: steps {row}" for name, row in steps.items()),
                hint="RayEngine(..., resume=True) continues it; another folder begins anew.",
            )  # fmt: skip

    def _start(self, ray: Any) -> None:
        self._stack.callback(self._kill, ray)
        waiting = {**_LASTING, "max_concurrency": self._calls}
        if self._is_collective:
            self._servers[_GROUP] = ray.remote(**waiting)(GroupRole).remote(self._folder, self.deadline)
        for endpoint in self.plan.endpoints:
            self._servers[endpoint] = ray.remote(**waiting)(ServerRole).remote(endpoint, self._folder, self.every)
        self._trainers = [self._new_trainer(ray, number) for number in range(self.plan.trainers)]
        states = None
        while states is None:
            states = self._states(ray)
        for role, state in states.items():
            if state is None:
                raise EnforceNotMet(
                    f"{role} does not start.", expected="a process with fluidnb", received=self._reason(ray, role),
                    hint="install the same version of fluidnb on all machines of the cluster.",
                )  # fmt: skip
            if state["version"] != fluidnb.__version__:
                raise EnforceNotMet(
                    f"{role} runs another version of fluidnb, on {state['host']}.", expected=fluidnb.__version__,
                    received=state["version"], hint="install the same version on all machines of the cluster.",
                )  # fmt: skip

    def _new_trainer(self, ray: Any, number: int) -> Any:
        """Start the process of a trainer."""
        kind = ray.remote(**_LASTING, max_concurrency=4)(TrainerRole)
        return kind.remote(number, self._folder, self.every)

    def _reason(self, ray: Any, role: str) -> str:
        """The reason for which the process of a role ended."""
        try:
            ray.get(self._roles()[role].state.remote(), timeout=self.deadline)
        except Exception as e:  # of several classes of Ray
            return next((line for line in reversed(str(e).splitlines()) if line.strip()), type(e).__name__)[:200]
        return "an answer at last"

    def _kill(self, ray: Any) -> None:
        """End the processes of all roles."""
        for actor in self._roles().values():
            ray.kill(actor)
        self._servers, self._trainers, self._prepared, self._preparing = {}, [], set(), {}
        self._asked, self.states, self._done, self.generation, self._lost = {}, {}, {}, -1, False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _roles(self) -> dict[str, Any]:
        """Role -> its actor."""
        return {**self._servers, **{f"trainer:{i}": actor for i, actor in enumerate(self._trainers)}}

    def _states(self, ray: Any) -> dict[str, Any] | None:
        """State of each role, None for one that restarts; None at all while some have not answered yet."""
        from ray.exceptions import RayActorError

        if not self._asked:
            self._asked = {actor.state.remote(): role for role, actor in self._roles().items()}
            self._since = time.monotonic()
        _, late = ray.wait(list(self._asked), num_returns=len(self._asked), timeout=_POLL)
        if late:
            waited = time.monotonic() - self._since
            wedged = [self._asked[call] for call in late if waited > self._patience(self._asked[call])]
            if wedged:
                others = sorted(set(self._asked.values()) - {self._asked[call] for call in late})
                raise EnforceNotMet(
                    f"{', '.join(wedged)} does not answer for {waited:.0f} s.", expected="an answer of every role",
                    received=f"answers of {', '.join(others) or 'none'}",
                    hint="its process is stopped, or its machine is overloaded: end it, and Ray starts it again.",
                )  # fmt: skip
            return None
        asked, self._asked = self._asked, {}
        states: dict[str, Any] = {}
        for call, role in asked.items():
            states[role] = None
            with contextlib.suppress(RayActorError):
                states[role] = ray.get(call)
        self.states = states
        return states

    def _patience(self, role: str) -> float:
        """Seconds until a role counts as hanging; a process that starts may take longer."""
        return self.deadline if self.states.get(role) else max(self.deadline, _START)

    # ---- fluidnb.op.engine.Engine, for programs that this process runs between two calls of `train`

    def trainer(self, number: int) -> Connection:
        """A connection to the servers, at the step that all trainers have reached."""
        connection = Connection(number, self.plan.sync, _Reach(self._servers))
        connection.join(self.generation, self._done.get(number, 0))
        return connection

    def server(self, endpoint: str) -> Any:
        """See `fluidnb.op.engine.Engine`: there is none here."""
        raise NotImplementedError("servers are in other processes")

    # ---- a debug session

    def role_names(self) -> dict[str, str]:
        """Names of roles as people write them -> those of this engine."""
        return role_keys(self.plan)

    def has_ended(self, role: str) -> bool:
        """Whether a role does not run any more: none does outside of `train`."""
        return not self.is_training

    def actor(self, role: str) -> Any:
        """The process of a role.

        Raises:
            NotFound: it has ended with this engine, or has left.
        """
        actor = self._roles().get(role)
        if actor is None:
            raise NotFound(
                f"{role} has ended.", expected=", ".join(self._roles()) or "an engine that runs", received=role,
                hint="attach to a role while the training runs.",
            )  # fmt: skip
        return actor

    def attach(self, session: Session, name: str) -> None:
        """Move a debug session into a role, and wait until the role is paused.

        Args:
            session: of this process; what is typed into it runs in a session of the role's process.
            name: ``trainer0``, ``pserver1``, or as this engine calls it.
        """
        roles = self.role_names()
        key = roles.get(name, name)
        if key not in roles.values():
            raise NotFound(
                f"There is no role {name}.", expected=", ".join(roles), received=name,
                hint=near(name, roles) or "roles lists them.",
            )  # fmt: skip
        if session.role is not None:
            session.role.leave()
        name = next(known for known, each in roles.items() if each == key)
        role = RemoteRole(self, session, name, key)
        try:
            role.wait()
        except BaseException:  # it has ended meanwhile: the session is in no role then
            role.leave()
            raise

    def suspend_deadline(self, suspended: bool) -> None:
        """Let trainers wait for each other without end, while a debug session is in a role."""
        import ray

        if self._is_collective:
            self._tell_servers(ray, "suspend", suspended)

    # ---- training

    def train(
        self, reader: Reader, fetch_list: Sequence[Any] = (), report: Report = no_report,
        stop: Callable[[], bool] = never,
    ) -> list[list[Any]]:  # fmt: skip
        """Run all trainers until their batches end; another call continues with its own batches.

        Args:
            reader: gives the feeds of a trainer by its number, the same at each call; it is sent to the processes.
            fetch_list: variables or names to fetch in each step.
            report: called for each step of a trainer, some time after it.
            stop: called between calls of trainers; once it gives True, all stop after the same number of steps.

        Returns:
            For each trainer, for each step, the fetched values; None for a step that a killed trainer did not report,
            that an earlier run took, or in which the trainer had not joined or had left.

        Raises:
            EnforceNotMet: a role has failed, or does not answer, or no step has ended for `deadline` seconds.
        """
        self.is_training = True
        try:
            return self._train(reader, [v if isinstance(v, str) else v.name for v in fetch_list], report, stop)
        finally:
            self.is_training = False

    def _train(
        self, reader: Reader, names: list[str], report: Report, stop: Callable[[], bool]
    ) -> list[list[Any]]:  # fmt: skip
        """See `train`."""
        import ray

        everyone = range(len(self._trainers))
        results: list[dict[int, Any]] = [{} for _ in everyone]
        begun = {number: self._done.get(number, 0) for number in everyone}  # the step of each first result
        running: dict[Any, tuple[int, int]] = {}  # call -> trainer, and the generation that it belongs to
        over: set[int] = set()
        reached = [self._done.get(number, 0) for number in everyone]  # steps that each has finished
        until: int | None = None  # the step at which all trainers stop
        known, last = -1, time.monotonic()  # known: the generation that `reached` belongs to
        self._course += 1
        self._tell_servers(ray, "expect_all")
        while True:
            states = self._states(ray)
            steps = None if states is None else self._recover(ray, states)
            if steps is not None and known != self.generation:
                known, reached = self.generation, list(steps)
                over.clear()  # what came after the checkpoint is trained again
            if None in self.states.values() or len(self._prepared) < len(everyone) or self.attached:
                last = time.monotonic()  # processes start, or a person looks at one
            if until is None and (stop() or self._wanted is not None):
                until = max(*reached, *self._hold(ray))
            if not running and known == self.generation:
                if all(number in over or reached[number] == until for number in everyone):
                    kept, lost = self._keep(ray)
                    if kept and (over or self._wanted is None or stop()):
                        break
                    if kept and self._wanted is not None:
                        reader = reader_among(reader, self._wanted, reached[0] - self._done.get(0, 0))
                        self._change(ray, self._wanted, reached[0])
                        everyone, until, known = range(len(self._trainers)), None, -1
                        for number in range(len(results), len(everyone)):
                            results.append({})
                            begun[number] = begun[0]
                        continue
                    for number in lost:
                        over.discard(number)
                        reached[number] = -1
            ready = self._ready(ray)
            if steps is not None and (len(ready) == len(everyone) or not self._is_collective):
                for number in sorted(ready - {number for number, _ in running.values()} - over):
                    if reached[number] != until:
                        call = self._continue(number, steps[number], reader, names, until)
                        running[call] = number, self.generation
            for call in ray.wait(list(running), timeout=_POLL)[0] if running else ():
                number, generation = running.pop(call)
                outcome = self._outcome(ray, call, number)
                if outcome is None:
                    continue
                last = time.monotonic()
                start, values, ended = outcome
                results[number].update(enumerate(values, start - begun[number]))
                for at, row in enumerate(values, start - begun[number]):
                    report(number, at, row)
                if generation != self.generation:  # all have gone back meanwhile: it continues from there, too
                    continue
                reached[number] = start + len(values)
                if ended:
                    over.add(number)
                    if self.plan.sync:
                        self._tell_servers(ray, "leave", number, reached[number])
            silent = bool(self._asked) and time.monotonic() - self._since > 1  # `_states` waits, and names the role
            if time.monotonic() - last > self.deadline and not silent:
                raise self._stalled()
        count = max(at - begun[number] for number, at in enumerate(reached))
        self._done = dict(enumerate(reached))
        return [[row.get(step) for step in range(count)] for row in results]

    def resize(self, trainers: int) -> None:
        """Let trainers join or leave between two steps of `train`; returns at once, and from any thread.

        Those with the highest numbers leave. One that joins gets the parameters and a share of the batches that
        follow, for which the reader must be that of `split_batches`. Meanwhile all wait for its process.

        Args:
            trainers: how many there are from then on.

        Raises:
            EnforceNotMet: there would be none, or more than the processes were started for.
        """
        if 2 * trainers + 8 > self._calls:
            raise EnforceNotMet(
                f"{trainers} trainers are too many to join.", expected=f"{(self._calls - 8) // 2} or fewer",
                received=trainers, hint="transpile(trainers=N) with as many from the beginning.",
            )  # fmt: skip
        self._wanted = checked_count(trainers)

    def _change(self, ray: Any, trainers: int, step: int) -> None:
        """Divide the program among another number of trainers, at a step of which there are checkpoints."""
        self.transpiler = self.transpiler.among(trainers)
        self.plan, self._wanted, self._changed = self.transpiler.plan, None, True
        for actor in self._trainers[trainers:]:
            ray.kill(actor)
        del self._trainers[trainers:]
        self._trainers += [self._new_trainer(ray, number) for number in range(len(self._trainers), trainers)]
        self._prepared, self._preparing, self._asked = set(), {}, {}  # all get other programs
        self._done = dict.fromkeys(range(trainers), step)
        self._course += 1
        self.events.append(f"{trainers} trainers from step {step} on")

    def _continue(self, number: int, step: int, reader: Reader, names: list[str], until: int | None) -> Any:
        """Let a trainer train for a while, from a step on, and no further than to another."""
        first = self._done.get(number, 0)
        here = self._course, self.generation, step, first
        return self._trainers[number].steps.remote(*here, reader, names, until)

    def _hold(self, ray: Any) -> list[int]:
        """Let no trainer begin a further step; steps that they do not exceed."""
        from ray.exceptions import RayActorError

        calls, steps = [actor.hold.remote(self._course) for actor in self._trainers], []
        for call in ray.wait(calls, num_returns=len(calls), timeout=self.deadline)[0]:
            with contextlib.suppress(RayActorError):  # its new process gets the step to stop at
                steps.append(ray.get(call))
        return steps

    def _tell_servers(self, ray: Any, method: str, *args: Any) -> None:
        """Call a method of all servers; one that has ended begins a generation without it."""
        for actor in self._servers.values() if self.generation >= 0 else ():
            with contextlib.suppress(Rejoin):
                self._have_run(ray, [actor.call.remote(method, *args)])

    def _keep(self, ray: Any) -> tuple[bool, set[int]]:
        """Let all write checkpoints of the last step, where the next call of `train` begins.

        Returns:
            Whether all have, and the trainers whose processes have ended.
        """
        calls = [actor.keep.remote() for actor in self._trainers]
        late = ray.wait(calls, num_returns=len(calls), timeout=self.deadline)[1]
        lost = {n for n, call in enumerate(calls) if call not in late and self._outcome(ray, call, n) is None}
        servers = [] if self._is_collective else [actor.keep.remote() for actor in self._servers.values()]
        with contextlib.suppress(Rejoin):
            return self._have_run(ray, servers) and not late and not lost, lost
        return False, lost

    def _have_run(self, ray: Any, calls: list[Any]) -> bool:
        """Wait for calls of roles; whether all have run. A role that has ended or hangs is found by its state."""
        from ray.exceptions import GetTimeoutError, RayActorError

        try:
            ray.get(calls, timeout=self.deadline)
        except (RayActorError, GetTimeoutError):
            return False
        return True

    def _stalled(self) -> EnforceNotMet:
        """The error where no step ends, with the trainers that others wait for."""
        everyone = set(range(self.plan.trainers))
        missing: set[int] = set()
        for endpoint in self._servers:
            complete = set((self.states.get(endpoint) or {}).get("complete", ()))
            missing |= everyone - complete if complete else set()
        who = ", ".join(f"trainer:{number}" for number in sorted(missing)) or "Any trainer"
        steps = {role: None if state is None else state["step"] for role, state in self.states.items()}
        return EnforceNotMet(
            f"{who} has sent no gradients for {self.deadline:g} s.", expected="progress of every trainer",
            received="; ".join(f"{role}: {'restarts' if at is None else f'step {at}'}" for role, at in steps.items()),
            hint="its reader waits, or its step takes longer: RayEngine(..., deadline=SECONDS).",
        )  # fmt: skip

    def _ready(self, ray: Any) -> set[int]:
        """Trainers that know their programs; processes that are new get theirs meanwhile."""
        for number in set(range(len(self._trainers))) - self._prepared:
            call = self._preparing.get(number)
            if call is None:
                self._preparing[number] = self._prepare(number)
            elif ray.wait([call], timeout=0)[0]:
                del self._preparing[number]
                if self._have_run(ray, [call]):
                    self._prepared.add(number)
        return set(self._prepared)

    def _seed_of(self, role: str) -> int:
        """The seed of a role's programs: that of the training program, or one for each role."""
        return self.plan.program.random_seed or 1 + self._seed + list(self._roles()).index(role)

    def _prepare(self, number: int) -> Any:
        """Call a trainer with its programs."""
        plan = self.plan
        reach = _Reach({plan.logical[0]: self._servers[_GROUP]} if self._is_collective else self._servers)
        return self._trainers[number].prepare.remote(
            _bytes(self.transpiler.get_trainer_programs(number)), self._seed_of(f"trainer:{number}"), plan.logical,
            plan.sync, reach, self._is_collective, trainer_values(plan, self._initial),
        )  # fmt: skip

    def _outcome(self, ray: Any, call: Any, number: int) -> Any:
        """The result of a call of a trainer; None where it has to be called again."""
        from ray.exceptions import RayActorError

        try:
            return ray.get(call)
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
        self._lost = self._is_collective
        self.events.append(f"trainer:{number} has restarted")

    def _recover(self, ray: Any, states: dict[str, Any]) -> list[int] | None:
        """Begin a new generation where a server is new; gives each trainer's step, None while servers start."""
        rows = [states[endpoint] for endpoint in self._servers]
        if any(row is None for row in rows):
            return None
        for row in rows:
            if row["error"] is not None:
                raise row["error"]
        everyone = range(len(self._trainers))
        if not self._lost and not self._changed and all(row["generation"] == self.generation for row in rows):
            if any(row["step"] is None for row in rows):
                return None
            done = [self._done.get(number, 0) for number in everyone]
            if self.plan.sync:
                return [max(done[number], min(row["step"] for row in rows)) for number in everyone]
            # The newest step may be sent in part: servers ignore what they have seen.
            return [max(done[number], *(row["newest"].get(number, 0) for row in rows)) for number in everyone]
        step: int | None = None
        if self.generation < 0 and not self.resume:
            step = 0
        elif self.plan.sync:
            keepers = list(rows)
            if not self._is_collective and running_names(self.plan.program):
                keepers.append(states["trainer:0"])
            if None in keepers:
                return None
            step = max(set.intersection(*({0, *row["checkpoints"]} for row in keepers)))
            first = max(self._done.values(), default=0)
            if step < first:
                raise EnforceNotMet(
                    f"All roles have to go back to step {step}, and this call of train begins at step {first}.",
                    expected=f"a checkpoint of step {first}", received=f"step {step}",
                    hint="give all batches in one call of train.",
                )  # fmt: skip
        self.generation += 1
        changed, self._lost, self._changed = self._changed, False, False
        if self.generation and not changed:
            who = "trainers" if self._is_collective else "servers"
            back = "their newest checkpoints" if step is None else f"step {step}"
            self.events.append(f"all {who} went back to {back}")
        self._have_run(ray, [self._begin(name, actor, step) for name, actor in self._servers.items()])
        if self.attached:
            self.suspend_deadline(True)
        self._asked = {}
        return None

    def _begin(self, name: str, actor: Any, step: int | None) -> Any:
        """Call a server, or the group, to begin a generation."""
        plan = self.plan
        if name == _GROUP:
            return actor.begin.remote(self.generation, step, plan.trainers)
        return actor.begin.remote(
            self.generation, step, _bytes(self.transpiler.get_pserver_programs(name)), self._seed_of(name),
            plan.trainers, plan.sync, divided_values(self.transpiler, name, self._initial),
        )  # fmt: skip

    @property
    def _is_collective(self) -> bool:
        """Whether there are no servers."""
        return isinstance(self.plan, CollectivePlan)

    def traffic(self) -> dict[str, Traffic]:
        """The work of each trainer's process so far, by role; without those that do not answer."""
        import ray

        answers = {f"trainer:{number}": actor.traffic.remote() for number, actor in enumerate(self._trainers)}
        ready, _ = ray.wait(list(answers.values()), num_returns=len(answers), timeout=_POLL)
        there = {}
        for role, answer in answers.items():
            with contextlib.suppress(ray.exceptions.RayActorError):
                if answer in ready:
                    there[role] = ray.get(answer)
        return there

    def values(self) -> dict[str, Any]:
        """All that the servers keep, parameters, accumulators and learning rates: whole arrays by name.

        In collective mode what trainer 0 keeps.
        """
        if isinstance(self.plan, CollectivePlan):
            return self._of_first(trainer_names(self.plan))
        newest = self._answers(lambda: {e: actor.call.remote("newest") for e, actor in self._servers.items()})
        return whole_values(self.transpiler, newest)

    def parameters(self) -> dict[str, Any]:
        """The whole parameters as the servers have them now, by name; in collective mode those of trainer 0.

        Parameters that no optimizer updates, such as batch_norm's running averages, are those of trainer 0, as in
        Fluid. After a restart all trainers continue from these.
        """
        if isinstance(self.plan, CollectivePlan):
            return self._of_first([*self.plan.gradients, *self.plan.kept])
        values, kept = self.values(), self._of_first(self.plan.kept)
        return {name: values[name] for name in (*self.plan.slices, *self.plan.tables)} | kept

    def _of_first(self, names: Sequence[str]) -> dict[str, Any]:
        """Variables of trainer 0 by name."""
        values: dict[str, Any] = self._answers(lambda: {0: self._trainers[0].values.remote(names)})[0]
        return values

    def _answers(self, calls: Callable[[], dict[Any, Any]]) -> dict[Any, Any]:
        """Results of calls by their keys; roles that have ended after the training are restored first."""
        import ray
        from ray.exceptions import RayActorError

        with contextlib.suppress(RayActorError, Rejoin):
            return {key: ray.get(call) for key, call in calls().items()}
        self.train(_no_batches)
        return {key: ray.get(call) for key, call in calls().items()}
