"""Connection: a trainer's side of distributed training, over any engine."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidnb.distributed.shard import copied
from fluidnb.values import SelectedRows

#: ``call(endpoint, method, *arguments, check=…)`` calls a method of a `Shard` or `Group`; with ``check`` it may wait.
Call = Callable[..., Any]


@dataclass
class Flow:
    """Bytes and time between a trainer and a server, since the trainer began.

    Attributes:
        sent: bytes of gradients.
        received: bytes of parameters.
        seconds: in calls of the server, with the time that it waited for others.
    """

    sent: int = 0
    received: int = 0
    seconds: float = 0.0


@dataclass
class Traffic:
    """The work of a trainer since it began.

    Attributes:
        steps: training steps.
        samples: rows, or sequences, of its batches.
        flows: endpoint -> bytes and time.
    """

    steps: int = 0
    samples: int = 0
    flows: dict[str, Flow] = field(default_factory=dict)


class Connection:
    """Sends gradients and receives parameters: one call of each server for all gradients of a step, and one back.

    Args:
        number: of the trainer.
        sync: whether the servers wait for all trainers.
        call: reaches the servers.

    Attributes:
        step: training steps that this trainer has finished.
        traffic: counts its work.
        generation: the servers' generation that it belongs to.
    """

    def __init__(self, number: int, sync: bool, call: Call) -> None:
        self.number, self.sync, self._call = number, sync, call
        self.step = self.generation = self._first = 0
        self.traffic = Traffic()
        self._running: int | None = None  # the training step that the program runs
        self._sending: dict[str, dict[str, Any]] = {}
        # What a debugger may run again: values that this step's barrier has sent, and results of its reductions.
        self._sent: dict[str, dict[str, Any]] = {}
        self._reduced: dict[tuple[str, ...], Any] = {}
        self._names: dict[str, list[str]] = {}  # what the last step has received from each server
        self._wanted: dict[str, list[str]] = {}  # what this step has received so far
        self._received: dict[str, dict[str, Any]] = {}
        self._steps: dict[tuple[str, str], int] = {}  # steps of each gradient; where no barrier ends a step

    def join(self, generation: int, step: int) -> None:
        """Continue from a step of a generation."""
        self.generation, self.step, self._first, self._running = generation, step, step, None
        for known in (self._sending, self._sent, self._reduced, self._received, self._steps):
            known.clear()

    def call(self, endpoint: str, method: str, *args: Any, **check: Callable[[], None]) -> Any:
        """Call a method of a server's shard, and count bytes and time."""
        flow = self.traffic.flows.setdefault(endpoint, Flow())
        began = time.perf_counter()
        result = self._call(endpoint, method, *args, **check)
        flow.seconds += time.perf_counter() - began
        flow.sent += sum(_bytes(value) for value in args)
        flow.received += _bytes(result)
        return result

    def begin_step(self) -> None:
        """The trainer's program begins: what a debugger runs twice belongs to the same training step."""
        self._running = self.step
        self._sent, self._reduced = {}, {}

    def count(self, feed: Mapping[str, Any]) -> None:
        """Count a batch whose training step is over; the step, too, where no barrier has counted it."""
        if self.step == self._running:
            self.step += 1
        self.traffic.steps += 1
        self.traffic.samples += samples_of(feed)

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
        step = self.step if self._running is None else self._running
        for endpoint in endpoints:
            values = {**self._sent.get(endpoint, {}), **sending.get(endpoint, {})}
            self.call(endpoint, "push", self.generation, self.number, step, values)
            if self._running is not None:
                self._sent[endpoint] = values
        self.step = step + 1

    def receive(self, endpoint: str, name: str, check: Callable[[], None]) -> Any:
        """See `fluidnb.op.engine.TrainerSide`."""
        values = self._received.setdefault(endpoint, {})
        if name not in values:
            known = dict.fromkeys([name, *self._names.get(endpoint, ())])
            wanted = [each for each in known if each not in values]
            step = self.step if self.sync else 0
            values.update(self.call(endpoint, "pull", self.generation, step, wanted, check=check))
        names = self._wanted.setdefault(endpoint, [])
        if name not in names:
            names.append(name)
        return values[name]

    def fetch_barrier(self, endpoints: Sequence[str]) -> None:
        """See `fluidnb.op.engine.TrainerSide`."""
        self._received.clear()
        self._names, self._wanted = self._wanted, {}

    def prefetch(self, endpoint: str, table: str, ids: Any, check: Callable[[], None]) -> Any:
        """See `fluidnb.op.engine.TrainerSide`."""
        return self.call(endpoint, "rows", self.generation, table, ids, check=check)

    def save(self, endpoint: str, name: str, path: str, check: Callable[[], None]) -> None:
        """See `fluidnb.op.engine.TrainerSide`."""
        self.call(endpoint, "save", self.generation, name, path, check=check)

    def all_reduce(
        self, endpoints: Sequence[str], how: str, names: Sequence[str], values: Sequence[Any], check: Callable[[], None]
    ) -> Any:  # fmt: skip
        """See `fluidnb.op.engine.TrainerSide`; trainers meet at the first endpoint.

        Run again in the same step, after a debugger has stepped back, it gives the result that all trainers have got.
        """
        key = (how, *names)
        if key not in self._reduced:
            here = self.generation, self.number, len(endpoints)
            result = self.call(endpoints[0], "reduce", *here, how, names, values, check=check)
            if self._running is None:
                return result
            self._reduced[key] = result
        return self._reduced[key]


def samples_of(feed: Mapping[str, Any]) -> int:
    """Samples of a batch: the sequences of its first variable, or its rows.

    Example:
        >>> samples_of({"x": np.zeros((4, 13))})
        4
    """
    value = next(iter(feed.values()), ())
    lod = value.lod() if hasattr(value, "lod") else ()
    return len(lod[0]) - 1 if lod else len(value)


def _bytes(value: Any) -> int:
    """Bytes of arrays, alone or in a dict or list; 0 of anything else."""
    if isinstance(value, Mapping | list):
        return sum(map(_bytes, value.values() if isinstance(value, Mapping) else value))
    array = value.value.array if isinstance(value, SelectedRows) else value
    return array.nbytes if isinstance(array, np.ndarray) else 0
