"""Connection: a trainer's side of training with parameter servers, over any engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fluidnb.distributed.shard import copied

#: ``call(endpoint, method, *arguments)`` calls a method of a `Shard` and returns its result.
Call = Callable[..., Any]


class Connection:
    """Sends gradients and receives parameters; one call of each server for all gradients of a step, and one back.

    Args:
        number: of the trainer.
        sync: whether the servers wait for all trainers.
        call: reaches the servers.

    Attributes:
        step: training steps that this trainer has finished.
    """

    def __init__(self, number: int, sync: bool, call: Call) -> None:
        self.number, self.sync, self.call = number, sync, call
        self.step = 0
        self._sending: dict[str, dict[str, Any]] = {}
        self._received: dict[str, dict[str, Any]] = {}

    def send(self, endpoint: str, name: str, value: Any) -> None:
        """See `fluidnb.op.engine.TrainerSide`; synchronous gradients leave together, at the barrier."""
        if self.sync:
            self._sending.setdefault(endpoint, {})[name] = copied(value)
        else:
            self._received.clear()
            self.call(endpoint, "push", self.number, self.step, {name: copied(value)}, True)

    def send_barrier(self, endpoints: Sequence[str]) -> None:
        """See `fluidnb.op.engine.TrainerSide`."""
        sending, self._sending = self._sending, {}
        self._received.clear()
        for endpoint in endpoints:
            self.call(endpoint, "push", self.number, self.step, sending.get(endpoint, {}), True)
        self.step += 1

    def receive(self, endpoint: str, name: str, check: Callable[[], None]) -> Any:
        """See `fluidnb.op.engine.TrainerSide`."""
        if endpoint not in self._received:
            self._received[endpoint] = self.call(endpoint, "pull", self.step if self.sync else 0, check)
        return self._received[endpoint][name]

    def fetch_barrier(self, endpoints: Sequence[str]) -> None:
        """See `fluidnb.op.engine.TrainerSide`."""
        self._received.clear()

    def prefetch(self, endpoint: str, table: str, ids: Any, check: Callable[[], None]) -> Any:
        """See `fluidnb.op.engine.TrainerSide`."""
        return self.call(endpoint, "rows", table, ids, check)

    def all_reduce(self, name: str, value: Any, check: Callable[[], None]) -> Any:
        """See `fluidnb.op.engine.TrainerSide`."""
        raise NotImplementedError("parameter servers do not sum values among trainers.")
