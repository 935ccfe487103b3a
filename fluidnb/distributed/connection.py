"""Connection: a trainer's side of training with parameter servers, over any engine."""

from collections.abc import Callable, Sequence
from typing import Any

from fluidnb.distributed.shard import copied
from fluidnb.errors import NotBuiltYet

#: ``call(endpoint, method, *arguments, check=…)`` calls a method of a `Shard`; with ``check`` it may wait.
Call = Callable[..., Any]


class Connection:
    """Sends gradients and receives parameters: one call of each server for all gradients of a step, and one back.

    Args:
        number: of the trainer.
        sync: whether the servers wait for all trainers.
        call: reaches the servers.

    Attributes:
        step: training steps that this trainer has finished.
        generation: the servers' generation that it belongs to.
    """

    def __init__(self, number: int, sync: bool, call: Call) -> None:
        self.number, self.sync, self.call = number, sync, call
        self.step = self.generation = self._first = 0
        self._sending: dict[str, dict[str, Any]] = {}
        self._names: dict[str, list[str]] = {}  # what was received so far from each server
        self._received: dict[str, dict[str, Any]] = {}
        self._steps: dict[tuple[str, str], int] = {}  # steps of each gradient; where no barrier ends a step

    def join(self, generation: int, step: int) -> None:
        """Continue from a step of a generation."""
        self.generation, self.step, self._first = generation, step, step
        self._sending.clear()
        self._received.clear()
        self._steps.clear()

    def send(self, endpoint: str, name: str, value: Any) -> None:
        """See `fluidnb.op.engine.TrainerSide`; synchronous gradients leave together, at the barrier."""
        if self.sync:
            self._sending.setdefault(endpoint, {})[name] = copied(value)
        else:
            self._received.clear()
            step = self._steps.setdefault((endpoint, name), self._first)
            self.call(endpoint, "push", self.generation, self.number, step, {name: copied(value)})
            self._steps[endpoint, name] = step + 1
            self.step = max(self.step, step + 1)

    def send_barrier(self, endpoints: Sequence[str]) -> None:
        """See `fluidnb.op.engine.TrainerSide`."""
        sending, self._sending = self._sending, {}
        self._received.clear()
        for endpoint in endpoints:
            self.call(endpoint, "push", self.generation, self.number, self.step, sending.get(endpoint, {}))
        self.step += 1

    def receive(self, endpoint: str, name: str, check: Callable[[], None]) -> Any:
        """See `fluidnb.op.engine.TrainerSide`."""
        values = self._received.setdefault(endpoint, {})
        if name not in values:
            names = self._names.setdefault(endpoint, [])
            if name not in names:
                names.append(name)
            wanted = [known for known in names if known not in values]
            step = self.step if self.sync else 0
            values.update(self.call(endpoint, "pull", self.generation, step, wanted, check=check))
        return values[name]

    def fetch_barrier(self, endpoints: Sequence[str]) -> None:
        """See `fluidnb.op.engine.TrainerSide`."""
        self._received.clear()

    def prefetch(self, endpoint: str, table: str, ids: Any, check: Callable[[], None]) -> Any:
        """See `fluidnb.op.engine.TrainerSide`."""
        return self.call(endpoint, "rows", self.generation, table, ids, check=check)

    def all_reduce(self, name: str, value: Any, check: Callable[[], None]) -> Any:
        """See `fluidnb.op.engine.TrainerSide`."""
        raise NotBuiltYet("the sum of a variable over trainers", hint='config.mode = "pserver" trains with servers.')
