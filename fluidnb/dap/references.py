"""Numbers for frames and values, valid while the program is paused."""

import itertools
from typing import Any

from fluidnb.errors import NotFound

#: The smallest number: a Python debugger in the same process uses smaller ones.
BASE = 1 << 30
#: The end of the protocol's numbers; debugpy's, which are addresses, are larger.
END = 1 << 31


class References:
    """Numbers objects until the program moves."""

    def __init__(self) -> None:
        self._next = itertools.count(BASE + 1)
        self._known: dict[int, Any] = {}
        self._named: dict[Any, int] = {}

    def make(self, thing: Any) -> int:
        """A new number for an object."""
        number = next(self._next)
        self._known[number] = thing
        return number

    def named(self, key: Any, thing: Any) -> int:
        """The number of a key; at the first call a new one for an object."""
        if key not in self._named:
            self._named[key] = self.make(thing)
        return self._named[key]

    def find(self, number: int) -> Any:
        """The object with a number; raises NotFound after the program has moved."""
        try:
            return self._known[number]
        except KeyError:
            raise NotFound(
                "That is gone: the program has moved.", received=number, hint="request the stack again."
            ) from None

    def forget(self) -> None:
        """Forget all objects; no number is used twice."""
        self._known.clear()
        self._named.clear()
