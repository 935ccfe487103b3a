"""DistributeTranspiler: the door to distributed training, with Fluid's signatures."""

from fluidnb.arguments import checked
from fluidnb.errors import OpValueError
from fluidnb.program import Program, default_main_program, default_startup_program
from fluidnb.transpiler.distribute import trainer as trainers_programs
from fluidnb.transpiler.distribute.config import DistributeTranspilerConfig
from fluidnb.transpiler.distribute.plan import Plan, is_transfer, without
from fluidnb.transpiler.distribute.server import ServerPrograms


@checked
class DistributeTranspiler:
    """Turns a training program into the programs of trainers and parameter servers.

    The training program is not changed. The startup program is, as in Fluid: operators that receive the parameters'
    initial values are appended to it.

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
        self._plan: Plan | None = None
        self._servers: dict[str, ServerPrograms] = {}

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: int = 1,
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
            trainers: how many trainers there are.
            sync_mode: whether the servers wait for all trainers in each step.
            startup_program: None for the default startup program; it is changed.
            current_endpoint: ignored with parameter servers (compatibility).

        Raises:
            OpValueError: the program has no optimizer, endpoints repeat, or the trainer's number is too large.
        """
        endpoints = [name.strip() for name in pservers.split(",") if name.strip()]
        if not endpoints or len(set(endpoints)) < len(endpoints):
            raise OpValueError(
                "pservers must name each parameter server once.", expected='endpoints such as "ps:0,ps:1"',
                received=repr(pservers), hint="an endpoint is a name here; an engine decides where it runs.",
            )  # fmt: skip
        if not 0 <= trainer_id < trainers:
            raise OpValueError(
                f"There is no trainer {trainer_id} among {trainers}.", expected=f"0 to {trainers - 1}",
                received=trainer_id, hint="trainers= is how many there are; trainer_id counts from 0.",
            )  # fmt: skip
        main = program if program is not None else default_main_program()
        startup = startup_program if startup_program is not None else default_startup_program()
        before = without(startup, [op for op in startup.desc.block(0).ops if is_transfer(op)])
        plan = Plan.of(main, before, trainers, sync_mode, endpoints, self.config)
        if not any(is_transfer(op) for op in startup.desc.block(0).ops):
            trainers_programs.extend_startup(plan, startup, trainer_id)
        self._plan, self.trainer_id, self._servers = plan, trainer_id, {}
        self._divided = main.desc.serialize_to_string()

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

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """The program that this trainer runs for each batch.

        Args:
            wait_port: ignored (compatibility): a trainer waits for its servers when it first receives.
        """
        self.check_unchanged()
        return trainers_programs.main_program(self.plan, self.trainer_id)

    def get_trainer_programs(self, trainer_id: int) -> tuple[Program, Program]:
        """Main and startup program of any trainer.

        Args:
            trainer_id: its number, from 0.
        """
        self.check_unchanged()
        startup = self.plan.startup.clone()
        trainers_programs.extend_startup(self.plan, startup, trainer_id)
        return trainers_programs.main_program(self.plan, trainer_id), startup

    def get_pserver_program(self, endpoint: str) -> Program:
        """The program that a parameter server runs.

        Args:
            endpoint: one of those given to `transpile`.
        """
        return self._server(endpoint).main

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """Main and startup program of a parameter server."""
        server = self._server(endpoint)
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
        return self._server(endpoint).startup()

    def _server(self, endpoint: str) -> ServerPrograms:
        self.check_unchanged()
        plan = self.plan
        if endpoint not in plan.endpoints:
            raise OpValueError(
                f"There is no parameter server {endpoint}.", expected=", ".join(plan.endpoints), received=endpoint,
                hint="the endpoints are those given to transpile(pservers=...).",
            )  # fmt: skip
        if endpoint not in self._servers:
            self._servers[endpoint] = ServerPrograms(plan, endpoint)
        return self._servers[endpoint]
