"""Shard: the part of a parameter server that trainers reach, the same for every engine."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from fluidnb.errors import EnforceNotMet, near
from fluidnb.files.atomic_write import atomic_write
from fluidnb.op.engine import Arrival
from fluidnb.values import LoDTensor, SelectedRows
from fluidnb.values.tensor_file import write_record, write_rows

#: Seconds between two checks whether a waiting call has to stop.
_POLL = 0.05


class Rejoin(EnforceNotMet):
    """The servers have gone back to a checkpoint: a trainer continues from there."""


def copied(value: Any) -> Any:
    """A copy of an array or of SelectedRows that shares no memory with it."""
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows_.copy(), value.height_, LoDTensor(np.array(value.value.array)))
    return np.array(value)


def headline(error: BaseException) -> str:
    """The first line of an error's text; its type where it has none."""
    return (str(error) or type(error).__name__).splitlines()[0]


def raise_failure(error: BaseException) -> NoReturn:
    """Raise, for whoever waits, that another role has failed."""
    raise EnforceNotMet(
        f"Training has stopped because another role failed: {headline(error)}", expected="running trainers and servers",
        received=type(error).__name__, hint="the error of that role says what to do.",
    ) from error  # fmt: skip


def no_check() -> None:
    """Never stop a waiting call."""


class Shard:
    """Gradients that trainers have sent to one server, and the parameters that they may read. Thread-safe.

    Args:
        endpoint: of the server.
        trainers: how many trainers there are.
        sync: whether a step needs the gradients of all trainers.
        step: training steps that its parameters have seen when the server begins.
        published: called with step and values after each step, in the server's thread. Without waiting for all
            trainers this comes before the trainer gets its answer: what it knows to be part of the parameters is kept.

    Attributes:
        step: training steps that the server has finished.
        generation: how often the servers have gone back to a checkpoint; calls of an earlier one are refused.
        applied: (trainer, gradient) -> its training step that is part of the parameters; without waiting for all only.
    """

    def __init__(
        self, endpoint: str, trainers: int, sync: bool, step: int = 0,
        published: Callable[[int, Mapping[str, Any]], None] | None = None,
    ) -> None:  # fmt: skip
        self.endpoint, self.trainers, self.sync = endpoint, trainers, sync
        self.step, self.generation = step, 0
        self._published = published
        self._versions: dict[int, dict[str, Any]] = {}  # the last two: a trainer may be one step behind
        self._sent: dict[int, dict[str, Any]] = {}
        self._complete: set[int] = set()
        self._ended: dict[int, int] = {}  # trainer -> the steps that it took
        self._queue: deque[tuple[Arrival, dict[tuple[int, str], int]]] = deque()
        self._error: BaseException | None = None
        self._over = self._busy = self._interrupted = False
        self._taken: Arrival | None = None  # what the server's program updates by
        self._returned: Arrival | None = None  # the same, once the program has begun again without that update
        self._handled = 0  # messages that are part of the parameters
        self.applied: dict[tuple[int, str], int] = {}
        self._known: dict[tuple[int, str], int] = {}  # as `applied`, with messages that wait
        self._keys: dict[tuple[int, str], int] = {}  # of the message that the server's program has
        self._changed = threading.Condition()

    # ---- called for trainers

    def push(self, generation: int, trainer: int, step: int, values: Mapping[str, Any]) -> None:
        """Take the gradients of a trainer's step.

        Args:
            generation: the servers' generation that the trainer knows.
            step: number of the training step; what belongs to a finished step is ignored, as a repeated call is.
                Without waiting for all trainers, a gradient of a step that this trainer has sent is ignored.
            values: gradients by name; they are kept, so nothing else may write them.

        Raises:
            Rejoin: the servers have gone back meanwhile.
        """
        with self._changed:
            self._raise_if_useless(generation)
            if not self.sync:  # as in Fluid, a trainer continues when its gradient is part of the parameters
                fresh = {name: v for name, v in values.items() if self._known.get((trainer, name), -1) < step}
                if fresh:
                    keys = {(trainer, name): step for name in fresh}
                    self._known.update(keys)
                    self._queue.append((Arrival(fresh, trainer), keys))
                    self._changed.notify_all()
                ticket = self._handled + len(self._queue) + self._busy
                self._wait(lambda: self._handled >= ticket, no_check, f"an update by {self.endpoint}", generation)
            elif step >= self.step + self._is_updating():
                self._sent[trainer] = dict(values)
                self._complete.add(trainer)
            self._changed.notify_all()

    def pull(
        self, generation: int, step: int, names: Sequence[str], check: Callable[[], None] = no_check
    ) -> dict[str, Any]:  # fmt: skip
        """Parameters after a number of steps; waits for them.

        Args:
            generation: see `push`.
            step: training steps that they have seen; without waiting for all trainers, at least so many.
            names: of the variables.
        """
        with self._changed:
            there = lambda: self.step >= step and self.step in self._versions  # noqa: E731
            self._wait(there, check, f"step {step} of {self.endpoint}", generation)
            version = self._versions.get(step if self.sync else self.step)
            if version is None:
                raise Rejoin(
                    f"{self.endpoint} is at step {self.step} and has no parameters of step {step} any more.",
                    expected=f"step {self.step} or the one before", received=step,
                    hint="a trainer restarts from the newest checkpoint.",
                )  # fmt: skip
            return {name: version[name] for name in names}

    def rows(self, generation: int, table: str, ids: Any, check: Callable[[], None] = no_check) -> Any:
        """Rows of a table by their numbers, of the newest parameters."""
        with self._changed:
            ready = lambda: self.step in self._versions and not self._busy  # noqa: E731
            self._wait(ready, check, f"parameters of {self.endpoint}", generation)
            value = self._versions[self.step][table]
            if isinstance(value, SelectedRows):
                order = np.argsort(value.rows_, kind="stable")
                return np.asarray(value.value)[order[np.searchsorted(value.rows_, ids, sorter=order)]]
            return value[ids]

    def save(self, generation: int, name: str, path: str, check: Callable[[], None] = no_check) -> None:
        """Write a variable of the newest parameters into a file, in Paddle's format.

        Raises:
            EnforceNotMet: this server has no such variable, or the file cannot be written.
        """
        with self._changed:
            ready = lambda: self.step in self._versions and not self._busy  # noqa: E731
            self._wait(ready, check, f"parameters of {self.endpoint}", generation)
            known = self._versions[self.step]
            if name not in known:
                raise EnforceNotMet(
                    f"{self.endpoint} keeps no variable {name}.", expected=", ".join(known), received=name,
                    hint=near(name, known) or "transpile decides what each server keeps.",
                )  # fmt: skip
            value = known[name]
            with atomic_write(path, parents=True) as file:  # with the lock: no update changes rows meanwhile
                write_rows(file, value) if isinstance(value, SelectedRows) else write_record(file, value)

    def leave(self, trainer: int, steps: int) -> None:
        """A trainer has no more batches; the others may not wait for its next step."""
        with self._changed:
            self._ended[trainer] = steps
            self._changed.notify_all()

    def restore(self, applied: Mapping[tuple[int, str], int]) -> None:
        """Take over what the parameters of a checkpoint have seen, before the server begins."""
        self.applied, self._known = dict(applied), dict(applied)

    def expect_all(self) -> None:
        """All trainers have batches again."""
        with self._changed:
            self._ended.clear()

    # ---- called by the server's program: `fluidnb.op.engine.ServerSide`

    def publish(self, values: Mapping[str, Any], updated: bool) -> None:
        """See `fluidnb.op.engine.ServerSide`."""
        # Tables may be large; nothing changes them before the next `take`, and lookups do not overlap with updates.
        copies = {n: value if isinstance(value, SelectedRows) else copied(value) for n, value in values.items()}
        if updated:
            self.applied.update(self._keys)
            self._keys = {}
        if self._published is not None and not self.sync:
            self._published(self.step + updated, copies)
        with self._changed:
            self.step += updated
            self._versions = {step: old for step, old in self._versions.items() if step == self.step - 1}
            self._versions[self.step] = copies
            self._handled += self._busy
            self._busy = False
            self._taken, self._returned = None, None if updated else self._taken
            self._changed.notify_all()
        if self._published is not None and self.sync:
            self._published(self.step, copies)

    def take(self, check: Callable[[], None]) -> Arrival | None:
        """Gradients that trainers have sent: a whole step of all of them, or the oldest message of one."""
        with self._changed:
            self._taken, self._returned = self._returned or self._next(check), None
            self._busy = self._taken is not None
            return self._taken

    def _next(self, check: Callable[[], None]) -> Arrival | None:
        """The next gradients; waits for them, with the lock."""
        if not self.sync:
            self._wait(lambda: self._queue or self._over or self._interrupted, check, "")
            if self._interrupted or not self._queue:
                return None
            arrival, self._keys = self._queue.popleft()
            return arrival
        ready = lambda: len(self._complete) == self.trainers or self._over or self._interrupted  # noqa: E731
        self._wait(ready, check, "")
        if self._over or self._interrupted:
            return None
        values = {name: value for trainer in sorted(self._sent) for name, value in self._sent[trainer].items()}
        self._sent.clear()
        self._complete.clear()
        return Arrival(values)

    # ---- called by the engine

    def settle(self) -> None:
        """Wait until everything that was sent is part of the parameters."""
        with self._changed:
            self._wait(lambda: not self._queue and not self._busy, no_check, "")

    def change(self, trainers: int) -> None:
        """Expect another number of trainers from the next step on, in which the server's program may be another."""
        with self._changed:
            self.trainers = trainers
        self.interrupt()

    def interrupt(self) -> None:
        """Let the server's program end after the running update; it begins again at the same step."""
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()

    def has_begun(self) -> None:
        """The server's program has begun again: nothing is left to interrupt."""
        with self._changed:
            self._interrupted = False

    def begins_again(self) -> bool:
        """Whether the server's program has ended by `interrupt`."""
        with self._changed:
            again, self._interrupted = self._interrupted and not self._over, False
            return again

    def newest(self) -> dict[str, Any]:
        """All values that the server has published last."""
        with self._changed:
            return dict(self._versions[self.step])

    def end(self) -> None:
        """Training is over: the server's program ends."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """A role has failed: whoever waits gets an error."""
        with self._changed:
            self._error = self._error or error
            self._over = True
            self._changed.notify_all()

    def go_back(self, generation: int) -> None:
        """The servers begin a new generation: whoever waits in an earlier one gets `Rejoin`."""
        with self._changed:
            self.generation = generation
            self._over = True
            self._changed.notify_all()

    def state(self) -> dict[str, Any]:
        """Generation, step, trainers that have sent theirs, messages that wait, the newest step of each trainer."""
        with self._changed:
            ready = self.step in self._versions
            newest: dict[int, int] = {}
            for (trainer, _), step in self.applied.items():
                newest[trainer] = max(step, newest.get(trainer, 0))
            return {
                "generation": self.generation, "step": self.step if ready else None,
                "complete": sorted(self._complete), "waiting": len(self._queue), "newest": newest,
            }  # fmt: skip

    # ---- waiting

    def _is_updating(self) -> bool:
        """Whether the server's program has the gradients of the next step, and trainers do not know the result."""
        return self._taken is not None or self._returned is not None

    def _wait(
        self, ready: Callable[[], Any], check: Callable[[], None], what: str, generation: int | None = None
    ) -> None:  # fmt: skip
        """Wait until something holds, with the lock; raises when it cannot come any more."""
        while not ready():
            self._raise_if_useless(generation)
            self._raise_left(what)
            if self._over and what:
                raise EnforceNotMet(
                    f"Training is over: {what} does not come any more.", expected=what, received="the end of training",
                    hint="run the trainer's program inside the engine's with.",
                )  # fmt: skip
            self._changed.wait(_POLL)
            check()

    def _raise_left(self, what: str) -> None:
        """Raise where a step needs a trainer that has ended before it."""
        for trainer, steps in self._ended.items():
            if what and self.step >= steps and len(self._complete) > 0 and trainer not in self._complete:
                raise EnforceNotMet(
                    f"trainer:{trainer} has ended after {steps} steps, and others continue: {what} needs all trainers.",
                    expected="as many batches for each trainer", received=f"{steps} of trainer:{trainer}",
                    hint="give every trainer the same number of batches, or train with sync_mode=False.",
                )  # fmt: skip

    def _raise_if_useless(self, generation: int | None) -> None:
        """Raise where a role has failed, or a call belongs to an earlier generation."""
        if self._error is not None:
            raise_failure(self._error)
        if generation is not None and generation != self.generation:
            raise Rejoin(
                f"{self.endpoint} has gone back to a checkpoint.", expected=f"generation {self.generation}",
                received=f"generation {generation}", hint="a trainer restarts from the newest checkpoint.",
            )  # fmt: skip
