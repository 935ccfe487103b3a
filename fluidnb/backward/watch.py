"""Observers of backward, for lessons; without any, one check of a variable for each block."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fluidnb.backward.walk import Walk

#: ``watcher(walk, position)`` is called when a walk begins, with the number of operators of its block; after each
#: operator that it considers, with the operator's index; and at the end, with -1. What it sees must stay as it is.
Watcher = Callable[["Walk", int], object]
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Let somebody watch every backward of this thread."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def watching() -> Watcher | None:
    """The current observer of backward, or None."""
    return _watcher.get()
