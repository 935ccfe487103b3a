"""Engines, which carry values between trainers and parameter servers; operators look them up by logical endpoint."""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from fluidnb.errors import EnforceNotMet, near

#: Called while an operator waits; raises if its run is to stop.
Check = Callable[[], None]


#: How an all-reduce puts values together; the index is Fluid's ``reduce_type``.
REDUCTIONS = ("sum", "max", "min", "prod")


class Arrival(NamedTuple):
    """Gradients that a parameter server gets at once: a whole step of all trainers, or those of one message.

    Attributes:
        values: variable of the server's program -> array or SelectedRows.
        trainer: the trainer that sent it; None for all.
    """

    values: Mapping[str, Any] = MappingProxyType({})
    trainer: int | None = None


class TrainerSide(Protocol):
    """One trainer's connection to the parameter servers."""

    def send(self, endpoint: str, name: str, value: Any) -> None:
        """Send a gradient; the value is copied before the call returns."""

    def send_barrier(self, endpoints: Sequence[str]) -> None:
        """Mark the end of the gradients of this training step."""

    def receive(self, endpoint: str, name: str, check: Check) -> Any:
        """The value of a parameter after this trainer's last step; waits until the server has it."""

    def fetch_barrier(self, endpoints: Sequence[str]) -> None:
        """Mark the end of receiving: the next training step begins."""

    def prefetch(self, endpoint: str, table: str, ids: Any, check: Check) -> Any:
        """The rows of a table with these numbers, in their order."""

    def save(self, endpoint: str, name: str, path: str, check: Check) -> None:
        """Let a server write a variable into a file of its machine, in Paddle's format; waits until it is there."""

    def all_reduce(
        self, endpoints: Sequence[str], how: str, names: Sequence[str], values: Sequence[Any], check: Check
    ) -> Sequence[Any]:  # fmt: skip
        """The reduction of each variable over all trainers; waits for them. The results are read-only.

        Args:
            endpoints: of all trainers.
            how: one of `REDUCTIONS`.
            names: of the variables, the same on each trainer.
            values: arrays or SelectedRows; none of a trainer that only receives.
        """


class ServerSide(Protocol):
    """A parameter server's connection to the trainers."""

    def publish(self, values: Mapping[str, Any], updated: bool) -> None:
        """Let trainers read these values from now on; they are copied before the call returns.

        Args:
            updated: whether they have seen one more training step than those published before.
        """

    def take(self, check: Check) -> Arrival | None:
        """Gradients that trainers have sent; waits for them. None when training is over."""


class Engine(Protocol):
    """Connects the roles of one training."""

    def trainer(self, number: int) -> TrainerSide:
        """The connection of a trainer."""

    def server(self, endpoint: str) -> ServerSide:
        """The connection of a parameter server."""


_engines: dict[str, Engine] = {}
_lock = threading.Lock()
_thread = threading.local()
#: Identifiers of the threads that run a role that Ctrl-C does not stop; a set, since every run looks here.
in_background: set[int] = set()
if hasattr(os, "register_at_fork"):  # a thread of the child may get the identifier of one that is not there
    os.register_at_fork(after_in_child=in_background.clear)


@contextmanager
def acting_as(role: str, background: bool = False) -> Iterator[None]:
    """Inside, this thread runs the programs of a role: hooks of the user's own runs are left out.

    Args:
        background: whether Ctrl-C is not for this training, which nobody waits for.
    """
    _thread.role = role
    if background:
        in_background.add(threading.get_ident())
    try:
        yield
    finally:
        _thread.role = ""
        in_background.discard(threading.get_ident())


def acting_role() -> str:
    """The role whose programs this thread runs; empty for the user's own runs."""
    role: str = getattr(_thread, "role", "")
    return role


def attach(engine: Engine, endpoints: Iterable[str]) -> None:
    """Let operators find an engine by its endpoints.

    Raises:
        EnforceNotMet: another engine has one of them. None is attached then.
    """
    wanted = list(endpoints)
    with _lock:
        taken = [name for name in wanted if _engines.get(name, engine) is not engine]
        if taken:
            raise EnforceNotMet(
                f"The endpoint {taken[0]} belongs to another training that is running.",
                expected="endpoints that are free", received=", ".join(wanted),
                hint="stop the other training, or give this one other endpoints in transpile(pservers=...).",
            )  # fmt: skip
        _engines.update((name, engine) for name in wanted)


def detach(engine: Engine, but: Collection[str] = ()) -> None:
    """Forget an engine at all of its endpoints but these; unknown engines are ignored."""
    with _lock:
        for name in [name for name, known in _engines.items() if known is engine and name not in but]:
            del _engines[name]


def engine_at(endpoint: str) -> Engine:
    """The engine with an endpoint.

    Raises:
        EnforceNotMet: there is none in this process.

    Example:
        >>> try:
        ...     engine_at("ps:7")
        ... except EnforceNotMet as error:
        ...     print(error.summary)
        No engine serves the endpoint ps:7 in this process.
    """
    engine = _engines.get(endpoint)
    if engine is None:
        known = ", ".join(_engines)
        raise EnforceNotMet(
            f"No engine serves the endpoint {endpoint} in this process.",
            expected=f"one of {known}" if known else "an endpoint of a training that is running", received=endpoint,
            hint=near(endpoint, _engines) or "run the program through an engine: "
            "with fluid.distributed.LocalEngine(transpiler) as engine: engine.train(...)",
        )  # fmt: skip
    return engine
