"""Roles: a trainer, a parameter server or a meeting point of trainers in a separate process, driven by an engine."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import fluidnb
from fluidnb.debug.session import Session
from fluidnb.distributed.attachment import Attachment
from fluidnb.distributed.checkpoints import Checkpoints
from fluidnb.distributed.connection import Call, Connection, Traffic
from fluidnb.distributed.group import Group
from fluidnb.distributed.running_values import RunningValues
from fluidnb.distributed.server_values import store
from fluidnb.distributed.shard import Rejoin, Shard
from fluidnb.distributed.values import values_of
from fluidnb.errors import NotFound
from fluidnb.op import engine
from fluidnb.program import Program
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.run_numbers import count_from
from fluidnb.runtime.scope import Scope
from fluidnb.values.place import CPUPlace

#: Bytes of a main program and of its startup program.
Programs = Sequence[bytes]
#: Seconds of training in one call of `TrainerRole.steps`.
_TURN = 0.25


class Unprepared(Rejoin):
    """A trainer's process is new and does not know its programs."""


class DebuggedRole:
    """A role that a debug session of its process can go into: `fluidnb.distributed.attachment.Here`.

    Attributes:
        attachment: the session in it, or None.
        programs: its key -> its main program, once that is known.
        shards: its endpoint -> its shard, of a server.
    """

    def __init__(self, key: str) -> None:
        self.key, self.name = key, ""
        self.attachment: Attachment | None = None
        self.programs: dict[str, Program] = {}
        self.shards: dict[str, Any] = {}
        self._error: BaseException | None = None

    def attach(self, name: str) -> None:
        """Let a session go into this role at its next run.

        Args:
            name: of the role as people write it.
        """
        self.name = name
        if self.key not in self.programs:
            raise NotFound(
                f"{name} has not begun yet.", expected="a role that runs", received=name,
                hint=f"attach {name} again, once the first step is over.",
            )  # fmt: skip
        if self.attachment is None:
            Attachment(self, Session(self.programs[self.key]))
        self._attached().attach(name)

    def wait(self) -> None:
        """Wait until the role is paused."""
        self._attached().wait()

    def debug(self, function: Callable[..., Any], *args: Any) -> Any:
        """The result of a function of the session in this role."""
        return function(self._attached().session, *args)

    def pause(self) -> None:
        """Let a program that runs in the session pause."""
        if self.attachment is not None:
            self.attachment.session.pause()

    def leave(self) -> None:
        """Let the role run on without stops."""
        if self.attachment is not None:
            self.attachment.leave()

    def _attached(self) -> Attachment:
        if self.attachment is None:
            raise NotFound(
                "No debug session is in this process.", expected="a role that was attached to",
                received="a process that has restarted", hint="attach ROLE goes into it.",
            )  # fmt: skip
        return self.attachment

    def role_names(self) -> dict[str, str]:
        """See `Here`."""
        return {self.name: self.key}

    def has_ended(self, role: str) -> bool:
        """See `Here`; the engine knows when it ends the process."""
        return False

    def raise_first(self) -> None:
        """See `Here`."""
        if self._error is not None:
            raise self._error

    def suspend_deadline(self, suspended: bool) -> None:
        """See `Here`; the engine does it for all."""


class ServerRole(DebuggedRole):
    """Runs the programs of a parameter server, from a checkpoint or from the start.

    Args:
        endpoint: of the server.
        folder: of checkpoints.
        every: steps between two checkpoints.
    """

    def __init__(self, endpoint: str, folder: str, every: int) -> None:
        super().__init__(endpoint)
        self.endpoint, self.every = endpoint, every
        self.checkpoints = Checkpoints(folder, endpoint)
        self.shard: Shard | None = None
        self.scope = Scope()
        self._thread: threading.Thread | None = None
        engine.attach(self, [endpoint])

    def trainer(self, number: int) -> Any:
        """See `fluidnb.op.engine.Engine`: there is none here."""
        raise NotImplementedError("a server's process has no trainer")

    def server(self, endpoint: str) -> Any:
        """See `fluidnb.op.engine.Engine`."""
        return self.shard

    def begin(
        self, generation: int, step: int | None, programs: Programs, seed: int, trainers: int, sync: bool,
        initial: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Begin a generation.

        Args:
            step: of which there is a checkpoint, or 0; None for the newest that this server has.
            programs: bytes of its main and of its startup program.
            seed: the programs' random seed.
            trainers: how many there are.
            sync: whether a step needs all of them.
            initial: values at step 0 in place of those of the startup program, by name.
        """
        if self.shard is not None:
            self.shard.go_back(generation)
        self.leave()
        if self._thread is not None:
            self._thread.join()
        main, startup = (_program(data, seed) for data in programs)
        self.scope, exe = Scope(), Executor(CPUPlace())
        exe.run(startup, scope=self.scope)
        if step is None:
            step = max(self.checkpoints.steps(), default=0)
        store(self.scope, self.checkpoints.load(step) if step else initial or {})
        self.checkpoints.drop_after(step)
        self.shard = Shard(self.endpoint, trainers, sync, step, self._published)
        self.shard.generation = generation
        if step:
            self.shard.restore(self.checkpoints.applied(step))
        self.programs, self.shards = {self.endpoint: main}, {self.endpoint: self.shard}
        self._thread = threading.Thread(target=self._serve, args=(exe, main, self.shard), daemon=True)
        self._thread.start()

    def _serve(self, exe: Executor, main: Program, shard: Shard) -> None:
        try:
            exe.run(main, scope=self.scope)
            while shard.begins_again():
                exe.run(main, scope=self.scope)
        except BaseException as e:
            self._error = e
            shard.fail(e)

    def _published(self, step: int, values: Mapping[str, Any]) -> None:
        if step and step % self.every == 0:
            assert self.shard is not None, "it publishes"
            self.checkpoints.save(step, values, self.shard.applied)

    def keep(self) -> None:
        """Write a checkpoint of the parameters as they are now.

        Raises:
            Rejoin: this process is new.
        """
        shard = self._begun()
        if shard.step > 0 and shard.step not in self.checkpoints.steps():
            self.checkpoints.save(shard.step, shard.newest(), shard.applied)

    def _begun(self) -> Shard:
        """The shard; raises where the engine has not begun a generation yet."""
        if self.shard is None:
            raise Rejoin(f"{self.endpoint} has restarted.", hint="a trainer restarts from the newest checkpoint.")
        return self.shard

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the shard.

        Raises:
            Rejoin: this process is new, and the engine has not begun a generation yet.
        """
        return getattr(self._begun(), method)(*args)

    def state(self) -> dict[str, Any]:
        """Generation and step (None before they are known), steps with checkpoints, and the process."""
        state = {"generation": None, "step": None} if self.shard is None else self.shard.state()
        return {**state, "checkpoints": self.checkpoints.steps(), "error": self._error, **this_process()}


class GroupRole:
    """The meeting point of trainers without servers.

    Args:
        folder: of checkpoints, which trainer 0 writes.
        deadline: seconds that trainers wait for each other.
    """

    def __init__(self, folder: str, deadline: float) -> None:
        self.checkpoints, self.deadline = Checkpoints(folder, "trainer:0"), deadline
        self.group: Group | None = None
        self._step = 0  # at which the generation began

    def begin(self, generation: int, step: int, trainers: int) -> None:
        """Begin a generation.

        Args:
            step: of which there is a checkpoint, or 0.
            trainers: how many there are.
        """
        if self.group is not None:
            self.group.go_back(generation)
        self.group, self._step = Group(trainers, self.deadline, generation), step

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the group.

        Raises:
            Rejoin: this process is new, and the engine has not begun a generation yet.
        """
        if self.group is None:
            raise Rejoin("The group has restarted.", hint="a trainer continues from the newest checkpoint.")
        return getattr(self.group, method)(*args)

    def state(self) -> dict[str, Any]:
        """Generation and its first step (None before they are known), steps with checkpoints, and the process."""
        known = {"generation": None} if self.group is None else self.group.state()
        steps = {"step": self._step, "checkpoints": self.checkpoints.steps()}
        return {**known, **steps, "error": None, **this_process()}


class TrainerRole(DebuggedRole):
    """Runs the programs of a trainer, some steps at a time.

    Args:
        number: of the trainer.
        folder: of checkpoints.
        every: steps between two checkpoints.
    """

    def __init__(self, number: int, folder: str, every: int) -> None:
        super().__init__(f"trainer:{number}")
        self.number, self.folder, self.every = number, folder, every
        self.connection: Connection | None = None
        self.exe, self.scope = Executor(CPUPlace()), Scope()
        self._batches: Iterator[Mapping[str, Any]] | None = None
        self._first = 0  # the step of the reader's first batch
        self._held = 0  # the call of the engine's `train` whose steps are held

    def prepare(
        self, programs: Programs, seed: int, endpoints: list[str], sync: bool, call: Call, alone: bool,
        initial: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Get what is to be run.

        Args:
            programs: bytes of its main and of its startup program.
            seed: the programs' random seed.
            endpoints: of the parameter servers, or of all trainers.
            sync: whether the servers wait for all trainers.
            call: reaches the servers, or the group.
            alone: whether there are no servers.
            initial: values at step 0 in place of those of the startup program, by name.
        """
        self.main, self.startup = (_program(data, seed) for data in programs)
        self.running = RunningValues(self.main, self.folder, self.number, self.every, alone)
        self.initial, self.programs = initial, {self.key: self.main}
        self.leave()
        traffic = self.traffic()
        self.connection, self._batches = Connection(self.number, sync, call), None
        self.connection.traffic = traffic
        engine.attach(self, endpoints)

    def state(self) -> dict[str, Any]:
        """Generation and step (None before they are known), steps with running values of trainer 0, the process."""
        known = self.connection
        generation, step = (None, None) if known is None else (known.generation, known.step)
        kept = Checkpoints(self.folder, "trainer:0").steps()
        return {"generation": generation, "step": step, "checkpoints": kept, **this_process()}

    def trainer(self, number: int) -> Connection:
        """See `fluidnb.op.engine.Engine`."""
        assert self.connection is not None, "prepare comes before steps"
        return self.connection

    def server(self, endpoint: str) -> Any:
        """See `fluidnb.op.engine.Engine`: there is none here."""
        raise NotImplementedError("a trainer's process has no server")

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        """Variables of this trainer by name.

        Raises:
            Unprepared: this process is new.
        """
        self._known()
        return values_of(self.scope, names)

    def traffic(self) -> Traffic:
        """The work of this process so far."""
        return Traffic() if self.connection is None else self.connection.traffic

    def hold(self, course: int) -> int:
        """Begin no further step of a call of the engine's `train`; gives a step that this trainer does not exceed."""
        self._held = course
        return 0 if self.connection is None else self.connection.step + 1  # one may have begun just now

    def keep(self) -> int:
        """Write a checkpoint of the values as they are now, and give its step.

        Raises:
            Unprepared: this process is new.
        """
        step = self._known().step
        self.running.save(self.scope, step, last=True)
        return step

    def _known(self) -> Connection:
        """The connection; raises where this process is new."""
        if self.connection is None:
            raise Unprepared(f"trainer:{self.number} has restarted.", hint="the engine gives it its programs again.")
        return self.connection

    def steps(
        self, course: int, generation: int, step: int, first: int,
        reader: Callable[[int], Iterable[Mapping[str, Any]]], fetch: list[str], until: int | None = None,
    ) -> tuple[int, list[list[Any]], bool]:  # fmt: skip
        """Train for a while.

        Args:
            course: number of the call of the engine's `train`.
            generation: of the servers.
            step: the training step to continue from, if this process does not know better.
            first: the step of the reader's first batch.
            reader: gives the batches of a trainer by its number, the same at each call.
            fetch: names of the variables to fetch.
            until: the training step to stop before; None until `hold`.

        Returns:
            The number of the first step, the fetched values of each, and whether the batches have ended.

        Raises:
            Rejoin: the servers have gone back, or this process is new.
        """
        known = self._known()
        behind = self._batches is None or known.generation != generation
        if behind:
            self._batches = None
            known.join(generation, step)
            self.scope = Scope()
            self.exe.run(self.startup, scope=self.scope)
            if step == 0:
                store(self.scope, self.initial)
            self.running.load(self.scope, step)
            count_from(self.main, self.scope, step)  # the same random numbers as without a restart
        if behind or first != self._first:
            self._first, self._batches = first, islice(iter(reader(self.number)), known.step - first, None)
        assert self._batches is not None
        start, end = known.step, time.monotonic() + _TURN
        values: list[list[Any]] = []
        while self._held != course if until is None else known.step < until:
            feed = next(self._batches, None)
            if feed is None:
                return start, values, True
            known.begin_step()
            try:
                values.append(self.exe.run(self.main, feed=dict(feed), fetch_list=fetch, scope=self.scope))
            except BaseException as error:
                self._batches = None
                if values and isinstance(error, Rejoin):  # it is raised again at the next call; these steps are over
                    return start, values, False
                raise
            known.count(feed)
            self.running.save(self.scope, known.step)
            if time.monotonic() > end:
                return start, values, False
        return start, values, False


def this_process() -> dict[str, Any]:
    """This process: its number, its machine, its version of fluidnb."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "version": fluidnb.__version__}


def _program(data: bytes, seed: int) -> Program:
    program = Program.parse_from_string(data)
    program.random_seed = seed
    return program
