"""Group: the meeting point of trainers that reduce values, the same for every engine."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.distributed.shard import Rejoin, no_check, raise_failure
from fluidnb.errors import EnforceNotMet
from fluidnb.values import LoDTensor, SelectedRows

#: Seconds between two checks whether a waiting trainer has to stop.
_POLL = 0.05
#: Seconds that a trainer waits for the others.
DEADLINE = 120.0

_UFUNCS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


class Group:
    """Trainers that reduce values together: each waits until all have come. Thread-safe.

    Results are computed once, in the order of the trainers' numbers, so they are equal on all of them and in every run.

    Args:
        trainers: how many there are.
        deadline: seconds after which a trainer that has not come is reported; None without end.
        generation: how often trainers have gone back to a checkpoint; calls of another one are refused.

    Attributes:
        rounds: reductions that are finished.
        error: the first error of a trainer, or None.
        suspended: whether the deadline does not count, while a debug session is in a trainer.
    """

    def __init__(self, trainers: int, deadline: float | None = DEADLINE, generation: int = 0) -> None:
        self.trainers, self.deadline, self.generation, self.rounds = trainers, deadline, generation, 0
        self._given: dict[int, tuple[str, Sequence[str], Sequence[Any]]] = {}
        self._result: list[Any] = []  # of the last round: the next one is not complete before all have taken it
        self._buffers: dict[str, Any] = {}
        self._ended: dict[int, int] = {}  # trainer -> the steps that it took
        self._stopped: dict[int, int] = {}  # trainer whose waiting was stopped -> the round that it was in
        self.error: BaseException | None = None
        self.suspended = False
        self._changed = threading.Condition()

    def reduce(
        self, generation: int, trainer: int, trainers: int, how: str, names: Sequence[str], values: Sequence[Any],
        check: Callable[[], None] = no_check,
    ) -> list[Any]:  # fmt: skip
        """The reduction of each variable over all trainers.

        Args:
            generation: that the trainer knows.
            trainers: how many the trainer's program is made for.
            how: one of `fluidnb.op.engine.REDUCTIONS`.
            values: arrays or SelectedRows, which nobody writes before the call returns; none to receive only.

        Raises:
            EnforceNotMet: trainers differ in what they reduce, or one has not come.
            Rejoin: trainers have gone back to a checkpoint.
        """
        with self._changed:
            self._raise_if_useless(generation)
            if trainers != self.trainers or not 0 <= trainer < trainers:
                self.error = EnforceNotMet(
                    f"The program is made for trainer {trainer} of {trainers}, and {self.trainers} train.",
                    expected=f"programs for {self.trainers} trainers", received=f"trainer {trainer} of {trainers}",
                    hint="call transpile with the same trainers= for all.",
                )  # fmt: skip
                raise self.error
            if self._stopped.pop(trainer, self.rounds) < self.rounds:  # a debugger has paused it; the others came
                return self._result
            self._given[trainer] = how, names, values
            mine = self.rounds
            if len(self._given) == self.trainers:
                self._finish()
            self._changed.notify_all()
            try:
                self._wait(lambda: self.rounds > mine, check, names, generation)
            except BaseException:
                self._stopped[trainer] = mine
                raise
            return self._result

    def _finish(self) -> None:
        """Compute the result of a round; an error is raised on every trainer."""
        given = [self._given[number] for number in range(self.trainers)]
        try:
            first = given[0]
            for number, other in enumerate(given):
                if other[0] != first[0] or list(other[1]) != list(first[1]):
                    raise EnforceNotMet(
                        f"trainer:{number} reduces other variables than trainer:0.",
                        expected=f"{first[0]} of {', '.join(first[1])}"[:200],
                        received=f"{other[0]} of {', '.join(other[1])}"[:200],
                        hint="call transpile on all trainers with the same program.",
                    )  # fmt: skip
            self._result = [
                self._reduced(first[0], name, {n: values[i] for n, (_, _, values) in enumerate(given) if values})
                for i, name in enumerate(first[1])
            ]
        except BaseException as e:
            self.error = e
            raise
        self._given.clear()
        self.rounds += 1

    def _reduced(self, how: str, name: str, values: dict[int, Any]) -> Any:
        """The reduction of one variable: trainer -> its value."""
        (root, first), *others = values.items()
        for number, value in others:
            if _form(value) != _form(first):
                raise EnforceNotMet(
                    f"trainer:{number} has {name} in another form than trainer:{root}.", expected=_form(first),
                    received=_form(value), hint="call transpile on all trainers with the same program.",
                )  # fmt: skip
        if isinstance(first, SelectedRows):
            if how != "sum":
                raise EnforceNotMet(
                    f"SelectedRows have no {how} over trainers.", expected="sum", received=f"{how} of {name}",
                    hint="layers.embedding(is_sparse=False) gives a dense gradient.",
                )  # fmt: skip
            rows = np.concatenate([value.rows_ for value in values.values()])
            return SelectedRows(
                rows, first.height_, LoDTensor(np.concatenate([value.value.array for value in values.values()]))
            )
        if not others:
            return np.array(first)  # its owner continues while the others still read
        total = self._buffers.get(name)
        if total is None or total.shape != first.shape or total.dtype != first.dtype:
            total = self._buffers[name] = np.empty_like(first)
        for number, (_, value) in enumerate(others):
            _UFUNCS[how](total if number else first, value, out=total)
        return total

    def _wait(
        self, ready: Callable[[], bool], check: Callable[[], None], names: Sequence[str], generation: int
    ) -> None:  # fmt: skip
        """Wait with the lock; raises where a trainer has failed, has ended or does not come."""
        began = time.monotonic()
        while not ready():
            self._raise_if_useless(generation)
            missing = [number for number in range(self.trainers) if number not in self._given]
            for number in missing:
                if number in self._ended:
                    raise EnforceNotMet(
                        f"trainer:{number} has ended after {self._ended[number]} steps, and others continue.",
                        expected="as many batches for each trainer", received=f"{self._ended[number]} of "
                        f"trainer:{number}", hint="give every trainer the same number of batches.",
                    )  # fmt: skip
            began = time.monotonic() if self.suspended else began
            if self.deadline is not None and time.monotonic() - began > self.deadline:
                self.error = EnforceNotMet(
                    f"{' and '.join(f'trainer:{n}' for n in missing)} did not come to the all-reduce of "
                    f"{names[0] if names else 'nothing'} within {self.deadline:g} s.",
                    expected=f"{self.trainers} trainers", received=f"{len(self._given)} that wait",
                    hint="this trainer hangs or is much slower than the others; deadline= of the engine is the limit.",
                )  # fmt: skip
                raise self.error
            self._changed.wait(_POLL)
            check()

    def _raise_if_useless(self, generation: int) -> None:
        """Raise where a trainer has failed, or a call belongs to another generation."""
        if self.error is not None:
            raise_failure(self.error)
        if generation != self.generation:
            raise Rejoin(
                "The trainers have gone back to a checkpoint.", expected=f"generation {self.generation}",
                received=f"generation {generation}", hint="a trainer continues from the newest checkpoint.",
            )  # fmt: skip

    # ---- called by the engine

    def suspend(self, suspended: bool) -> None:
        """Set `suspended`."""
        self.suspended = suspended

    def go_back(self, generation: int) -> None:
        """The trainers begin a new generation: whoever waits in an earlier one gets `Rejoin`."""
        with self._changed:
            self.generation = generation
            self._changed.notify_all()

    def leave(self, trainer: int, steps: int) -> None:
        """A trainer has no more batches; the others may not wait for it."""
        with self._changed:
            self._ended[trainer] = steps
            self._changed.notify_all()

    def expect_all(self) -> None:
        """All trainers have batches again."""
        with self._changed:
            self._ended.clear()

    def fail(self, error: BaseException) -> None:
        """A trainer has failed: whoever waits gets an error."""
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    def settle(self) -> None:
        """Nothing is under way when all trainers have ended."""

    def end(self) -> None:
        """Training is over."""

    def state(self) -> dict[str, Any]:
        """Generation, reductions that are finished, and the trainers that wait for the next."""
        with self._changed:
            return {"generation": self.generation, "rounds": self.rounds, "complete": sorted(self._given)}


def _form(value: Any) -> str:
    """dtype and shape of a value; of SelectedRows without the number of rows."""
    if isinstance(value, SelectedRows):
        rows = np.asarray(value.value)
        return f"SelectedRows of {rows.dtype}{[value.height_, *rows.shape[1:]]}"
    return f"{value.dtype}{list(value.shape)}"
