"""Reader: what a variable of type READER holds, a stream of batches that ``read`` operators take from."""

from __future__ import annotations

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
    """Raised by a run whose reader has no more batches: the pass is over.

    Example:
        >>> issubclass(EOFException, EnforceNotMet)
        True
    """


class Source(Protocol):
    """Source of a `Reader`'s batches."""

    def pull(self, check: Check) -> Batch | None:
        """The next batch; None at the end of the pass."""

    def reset(self) -> None:
        """End the pass, so that another one can begin."""


class _Link:
    """A batch and the one after it, once that was pulled. A position in a stream is the link read last."""

    __slots__ = ("batch", "next")

    def __init__(self, batch: Batch = ()) -> None:
        self.batch = batch
        self.next: _Link | None = None


class Reader:
    """A stream of batches. One run reads it at a time; a batch is taken once.

    Batches that were read stay linked as long as somebody keeps an earlier position, as the debugger's journal does:
    reading from there again gives the same batches.

    Args:
        source: gives the batches.
        name: of its variable, for messages.
        over: what it was made over, a queue or another reader; over another one, another reader is made.

    Attributes:
        position: a list of one link, which a journal can save and restore.

    Example:
        >>> class Two:
        ...     def __init__(self): self.left = [((np.ones(1), ()),), ((np.zeros(1), ()),)]
        ...     def pull(self, check): return self.left.pop(0) if self.left else None
        >>> reader = Reader(Two(), "r")
        >>> before = list(reader.position)
        >>> reader.read()
        ((array([1.]), ()),)
        >>> reader.position[:] = before
        >>> reader.read()
        ((array([1.]), ()),)

    Source: Fluid's framework::ReaderHolder.
    """

    __slots__ = ("__weakref__", "_lock", "name", "over", "position", "source")

    def __init__(self, source: Source, name: str = "", over: Any = None) -> None:
        self.source, self.name, self.over = source, name, over
        self.position: list[Any] = [_Link()]
        self._lock = threading.RLock()

    def peek(self, check: Check = lambda: None) -> Batch:
        """The next batch, which stays the next one.

        Args:
            check: called while it waits; raises when the run is to stop.

        Returns:
            (array, LoD) of each tensor; not to be changed.

        Raises:
            EOFException: there is none.
            EnforceNotMet: the source failed.
        """
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
        """Take the next batch.

        Args:
            check: see `peek`.

        Returns:
            See `peek`.

        Raises:
            EnforceNotMet: see `peek`.
        """
        with self._lock:
            batch = self.peek(check)
            self.position[0] = self.position[0].next
            return batch

    def reset(self) -> None:
        """End the pass: what was not read is dropped."""
        self.source.reset()
        with self._lock:
            self.position[0] = _Link()

    def __repr__(self) -> str:
        return f"Reader({self.name}, {self.source!r})"
