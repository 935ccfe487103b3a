"""The garbage collector, during calls that make many objects at once."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep Python's collector from running inside a ``with``, for calls that make many objects which all stay.

    It runs after so many new objects, looks through all that a process has, and finds nothing here: the gradients of
    3,000 layers took 1.7 times as long with it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
