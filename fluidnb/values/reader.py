"""Reader, the value of a variable of type READER: a stream of batches for ``read`` operators."""

import threading
from collections.abc import Callable
from typing import Any, Protocol

from fluidnb.errors import EnforceNotMet

#: An array and the LoD of its rows.
Tensor = tuple[Any, tuple[tuple[int, ...], ...]]
#: The tensors of one batch.
Batch = tuple[Tensor, ...]
#: Raises when the run is to stop; a source that waits calls it again and again.
Check = Callable[[], None]


class EOFException(EnforceNotMet):
    """Raised by a run whose reader has no more batches: the pass is over."""


class Source(Protocol):
    """Source of a `Reader`'s batches."""

    def pull(self, check: Check) -> Batch | None:
        """The next batch; None at the end of the pass."""

    def reset(self) -> None:
        """Ends the pass, so that another one can begin."""


class _Link:
    """A batch and the one after it, once that was pulled. A position in a stream is the link read last."""

    __slots__ = ("batch", "next")

    def __init__(self, batch: Batch = ()) -> None:
        self.batch = batch
        self.next: _Link | None = None


class Reader:
    """A stream of batches. One run reads it at a time; a batch is read once.

    Batches that were read stay linked while an earlier position is kept, as in the debugger's journal: reading from
    there again gives the same batches.

    Args:
        over: the queue or reader that it was created over; over another one, another reader is created.
    """

    __slots__ = ("__weakref__", "_lock", "name", "over", "position", "source")

    def __init__(self, source: Source, name: str = "", over: Any = None) -> None:
        self.source, self.name, self.over = source, name, over
        self.position: list[Any] = [_Link()]
        self._lock = threading.RLock()

    def peek(self, check: Check = lambda: None) -> Batch:
        """The next batch, (array, LoD) of each tensor, not to be changed; it stays the next one."""
        with self._lock:
            last: _Link = self.position[0]
            if last.next is None:
                batch = self.source.pull(check)
                if batch is None:
                    raise EOFException(
                        "There is no next data.", received=f"the end of the pass of reader {self.name}",
                        hint="catch fluid.core.EOFException, call reset() of the reader, and start() for another pass.",
                    )  # fmt: skip
                last.next = _Link(batch)
            return last.next.batch

    def read(self, check: Check = lambda: None) -> Batch:
        """Returns and removes the next batch."""
        with self._lock:
            batch = self.peek(check)
            self.position[0] = self.position[0].next
            return batch

    def reset(self) -> None:
        """Ends the pass and drops the unread batches."""
        self.source.reset()
        with self._lock:
            self.position[0] = _Link()

    def __repr__(self) -> str:
        return f"Reader({self.name}, {self.source!r})"
