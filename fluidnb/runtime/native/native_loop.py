"""A compiled loop: calls its C function until the condition is false, and lets Ctrl-C and other threads in between."""

from pathlib import Path
from typing import Any

from fluidnb.runtime.native.functions import bound_call
from fluidnb.runtime.native.loop_source import FAILED, ITERATIONS, RELEASE, CLoop

#: Elements that are computed in one call, and in the first one, which keeps the lock of the interpreter.
_MOST, _FIRST = 1_000_000, 100_000


class NativeLoop:
    """A loop with its body as one C function.

    Attributes:
        condition: the array with the bool that its text tests.
    """

    __slots__ = ("_argument", "_call", "_size", "_table", "condition")

    def __init__(self, path: Path, source: CLoop, condition: Any) -> None:
        self._call, (self._argument,) = bound_call(path, "loop", source.table, source.kept)
        self._table: Any = self._argument.table
        self._size = max(source.size, 1)
        self.condition = condition

    def run(self, limit: int, stopped: Any) -> tuple[int, int]:
        """Run iterations until the condition is false, ``limit`` are done, or ``stopped.stop`` is true.

        Returns:
            The iterations that are done; the index of a call of the next iteration that cannot be made, or -1.
        """
        table, done, size = self._table, 0, _FIRST
        while True:
            most = min(max(size // self._size, 1), limit - done)
            table[RELEASE], table[ITERATIONS] = done > 0, most
            self._call(self._argument)
            now, failed = table[ITERATIONS], table[FAILED]
            done += now
            if now < most or done == limit or stopped.stop:
                return done, failed
            size = _MOST
