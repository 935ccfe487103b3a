"""DistributeTranspiler: one training program becomes those of all roles, with Fluid's signatures."""

from fluidnb.arguments import checked
from fluidnb.errors import OpValueError
from fluidnb.program import Program, default_main_program, default_startup_program
from fluidnb.program.remote_part import RemotePart
from fluidnb.transpiler.distribute import collective
from fluidnb.transpiler.distribute import trainer as trainers_programs
from fluidnb.transpiler.distribute.collective import CollectivePlan
from fluidnb.transpiler.distribute.config import DistributeTranspilerConfig
from fluidnb.transpiler.distribute.plan import Plan, is_transfer, without
from fluidnb.transpiler.distribute.server import ServerPrograms
from fluidnb.utils.representations import repr_html

#: Trainers at most: as many as there are ports.
_MOST_TRAINERS = 1 << 16


@checked
class DistributeTranspiler:
    """Turns a training program into the programs of trainers and parameter servers, or of trainers alone.

    The training program is not changed. The startup program is, as in Fluid: operators that receive the parameters'
    initial values are appended to it. With ``config.mode = "collective"`` there are no servers: each trainer has all
    parameters, begins with those of trainer 0, and updates them by gradients that ``allreduce`` averages over trainers.

    Args:
        config: how parameters are divided; None for the defaults.

    Example:
        >>> x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
        >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> t = fluid.DistributeTranspiler()
        >>> t.transpile(0, pservers="ps:0,ps:1", trainers=2)
        >>> [op.type for op in t.get_trainer_program().global_block().ops][-5:]
        ['send', 'send_barrier', 'recv', 'recv', 'fetch_barrier']
        >>> [op.type for op in t.get_pserver_program("ps:0").block(1).ops]
        ['sum', 'scale', 'sgd']

    Source: fluid.DistributeTranspiler; developer guide, section on transpilers.
    """

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        self.config = config if config is not None else DistributeTranspilerConfig()
        self.config.check()
        self._plan: Plan | None = None  # None before `transpile`
        self._servers: dict[str, ServerPrograms] = {}

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: int | str = 1,
        sync_mode: bool = True,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
    ) -> None:
        """Divide a program.

        Args:
            trainer_id: number of this trainer, from 0.
            program: the training program, with optimizer; None for the default main program.
            pservers: endpoints of the parameter servers, with commas between them. They are names: an engine
                decides where each runs.
            trainers: how many trainers there are; in collective mode also their endpoints, with commas between them.
            sync_mode: whether the servers wait for all trainers in each step.
            startup_program: None for the default startup program; it is changed.
            current_endpoint: in collective mode with endpoints, the one of this trainer; else ignored (compatibility).

        Raises:
            OpValueError: the program has no optimizer, endpoints repeat, or the trainer's number is too large.
        """
        main = program if program is not None else default_main_program()
        startup = startup_program if startup_program is not None else default_startup_program()
        before = without(startup, [op for op in startup.desc.block(0).ops if is_transfer(op)])
        if self.config.is_collective:
            members = _trainer_endpoints(trainers)
            _check_trainer(trainer_id, len(members))
            _check_current(current_endpoint, members, trainer_id)
            plan: Plan = CollectivePlan.among(main, before, members, self.config)
        else:
            if not isinstance(trainers, int):
                raise OpValueError(
                    "trainers is a number with parameter servers.", expected="how many trainers there are",
                    received=repr(trainers), hint='config.mode = "collective" takes the endpoints of trainers.',
                )  # fmt: skip
            _check_count(trainers)
            servers = _endpoints(pservers, "pservers must name each parameter server once.")
            _check_trainer(trainer_id, trainers)
            plan = Plan.of(main, before, trainers, sync_mode, servers, self.config)
        block = startup.global_block()
        for index in reversed(range(len(block.ops))):  # what an earlier call has appended
            if is_transfer(block.ops[index].desc):
                block.remove_op(index)
        _extend_startup(plan, startup, trainer_id)
        self._plan, self.trainer_id, self._servers = plan, trainer_id, {}
        self._divided = main.desc.serialize_to_string()

    def among(self, trainers: int) -> "DistributeTranspiler":
        """The same division for another number of trainers; servers and slices stay where they are.

        Args:
            trainers: how many there are.

        Example:
            >>> x = fluid.layers.data("x", [2])
            >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(x, 1)))
            >>> t = fluid.DistributeTranspiler(); t.transpile(0, pservers="ps:0", trainers=2)
            >>> t.among(3).plan.trainers, t.plan.trainers
            (3, 2)
        """
        self.check_unchanged()
        plan, other = self.plan, DistributeTranspiler(self.config)
        here = plan.members if isinstance(plan, CollectivePlan) else []
        _check_count(trainers)
        members = [*here, *(f"trainer:{number}" for number in range(len(here), trainers))][:trainers]
        other.transpile(
            0, plan.program, ",".join(plan.endpoints) or "none:0", ",".join(members) if here else trainers, plan.sync,
            plan.startup.clone(), members[0] if here else "none:0",
        )  # fmt: skip
        return other

    @property
    def is_divided(self) -> bool:
        """Whether `transpile` was called."""
        return self._plan is not None

    @property
    def plan(self) -> Plan:
        """The division.

        Raises:
            OpValueError: `transpile` was not called.
        """
        if self._plan is None:
            raise OpValueError(
                "Nothing is divided yet.", expected="a call of transpile before this one", received="no call",
                hint='t.transpile(trainer_id=0, pservers="ps:0,ps:1", trainers=2)',
            )  # fmt: skip
        return self._plan

    def check_unchanged(self) -> None:
        """Raise where the training program was edited after `transpile`: its division is that of the old one.

        Raises:
            OpValueError: with the number of operators before and after.
        """
        now = self.plan.program
        if now.desc.serialize_to_string() != self._divided:
            before = Program.parse_from_string(self._divided)
            raise OpValueError(
                "The program was edited after transpile.", expected=before.short(), received=now.short(),
                hint="call transpile again: trainers and servers must run programs of one division.",
            )  # fmt: skip

    _repr_html_ = repr_html

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """The program that this trainer runs for each batch.

        Args:
            wait_port: ignored (compatibility): a trainer waits for its servers when it first receives.
        """
        self.check_unchanged()
        return self._trainer_program(self.trainer_id)

    def get_trainer_programs(self, trainer_id: int) -> tuple[Program, Program]:
        """Main and startup program of any trainer.

        Args:
            trainer_id: its number, from 0.
        """
        self.check_unchanged()
        plan = self.plan
        _check_trainer(trainer_id, plan.trainers)
        startup = plan.startup.clone()
        _extend_startup(plan, startup, trainer_id)
        return self._trainer_program(trainer_id), startup

    def _trainer_program(self, trainer: int) -> Program:
        """The main program of a trainer, which knows what servers keep of it."""
        if isinstance(self.plan, CollectivePlan):
            return collective.main_program(self.plan, trainer)
        program = trainers_programs.main_program(self.plan, trainer)
        program.remote = self._remote
        return program

    def _remote(self) -> dict[str, list[RemotePart]]:
        """Variable of the training program -> its parts on servers, in order; one server of those with a copy."""
        parts: dict[str, dict[int, RemotePart]] = {}
        for number, endpoint in enumerate(self.plan.endpoints):
            server = self.server(endpoint)
            for name, var in server.block.desc.vars.items():
                source, part = server.sources.get(name, (name, None))
                if var.persistable() and source in self.plan.program.desc.block(0).vars:
                    index = number if name in server.tables else 0 if part is None else part.index
                    parts.setdefault(source, {}).setdefault(index, (endpoint, name, tuple(var.shape())))
        return {name: [row[index] for index in sorted(row)] for name, row in parts.items()}

    def get_pserver_program(self, endpoint: str) -> Program:
        """The program that a parameter server runs.

        Args:
            endpoint: one of those given to `transpile`.
        """
        return self.server(endpoint).main

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """Main and startup program of a parameter server."""
        server = self.server(endpoint)
        return server.main, server.startup()

    def get_startup_program(
        self, endpoint: str, pserver_program: Program | None = None, startup_program: Program | None = None
    ) -> Program:
        """The program that a parameter server runs first.

        Args:
            endpoint: of the server.
            pserver_program: ignored (compatibility).
            startup_program: ignored (compatibility): the one given to `transpile` counts.
        """
        return self.server(endpoint).startup()

    def server(self, endpoint: str) -> ServerPrograms:
        """The programs of a parameter server, with the origin of their variables.

        Args:
            endpoint: one of those given to `transpile`.

        Raises:
            OpValueError: there is no such server, or the training program was edited since.
        """
        self.check_unchanged()
        plan = self.plan
        if endpoint not in plan.endpoints:
            raise OpValueError(
                f"There is no parameter server {endpoint}.", received=endpoint,
                expected=", ".join(plan.endpoints) or "none: trainers of collective training need no server",
                hint="the endpoints are those given to transpile(pservers=...)." if plan.endpoints
                else 'config.mode = "pserver" trains with servers.',
            )  # fmt: skip
        if endpoint not in self._servers:
            self._servers[endpoint] = ServerPrograms(plan, endpoint)
        return self._servers[endpoint]


def _extend_startup(plan: Plan, startup: Program, trainer: int) -> None:
    """Append what gives all trainers the same initial values."""
    if isinstance(plan, CollectivePlan):
        collective.extend_startup(plan, startup, trainer)
    else:
        trainers_programs.extend_startup(plan, startup, trainer)


def _endpoints(text: str, problem: str) -> list[str]:
    """Endpoints with commas between them, each once."""
    endpoints = [name.strip() for name in text.split(",") if name.strip()]
    if not endpoints or len(set(endpoints)) < len(endpoints):
        raise OpValueError(
            problem, expected='endpoints such as "ps:0,ps:1"', received=repr(text),
            hint="an endpoint is a name here; an engine decides where it runs.",
        )  # fmt: skip
    return endpoints


def _trainer_endpoints(trainers: int | str) -> list[str]:
    """The endpoints of trainers, given as such or by their number."""
    if isinstance(trainers, str):
        return _endpoints(trainers, "trainers must name each trainer once.")
    _check_count(trainers)
    return [f"trainer:{number}" for number in range(trainers)]


def _check_count(trainers: int) -> None:
    if trainers > _MOST_TRAINERS:
        raise OpValueError("These are too many trainers.", expected=f"at most {_MOST_TRAINERS}", received=trainers)


def _check_trainer(trainer: int, trainers: int) -> None:
    if not 0 <= trainer < trainers:
        raise OpValueError(
            f"There is no trainer {trainer} among {trainers}.", expected=f"0 to {trainers - 1}",
            received=trainer, hint="trainers= is how many there are; trainer_id counts from 0.",
        )  # fmt: skip


def _check_current(current: str, endpoints: list[str], trainer: int) -> None:
    """Refuse an endpoint of this trainer that is another one's."""
    if current in endpoints and endpoints[trainer] != current:
        raise OpValueError(
            f"{current} is not the endpoint of trainer {trainer}.", expected=endpoints[trainer], received=current,
            hint="trainer_id is the position of current_endpoint among trainers.",
        )  # fmt: skip
