"""Numbers by which clients know frames and values while the program stands still."""

from __future__ import annotations

import itertools
from typing import Any

from fluidnb.errors import NotFound

#: All our numbers begin here, far from those of a debugger of Python in the same process.
BASE = 1 << 30
#: And they end here, where the protocol's numbers end; debugpy's, which are addresses, are larger.
END = 1 << 31


class References:
    """Gives numbers to things, until the program moves.

    Example:
        >>> known = References(); number = known.make("a frame"); known.find(number)
        'a frame'
        >>> known.forget(); known.find(number)
        Traceback (most recent call last):
        fluidnb.errors.NotFound: That is gone: the program has moved.
          ...
    """

    def __init__(self) -> None:
        self._next = itertools.count(BASE + 1)
        self._known: dict[int, Any] = {}
        self._named: dict[Any, int] = {}

    def make(self, thing: Any) -> int:
        """A new number for a thing.

        Args:
            thing: anything.
        """
        number = next(self._next)
        self._known[number] = thing
        return number

    def named(self, key: Any, thing: Any) -> int:
        """The number that a key has; the first time a new one for a thing.

        Args:
            key: what it is known by.
            thing: the thing.
        """
        if key not in self._named:
            self._named[key] = self.make(thing)
        return self._named[key]

    def find(self, number: int) -> Any:
        """What has a number.

        Args:
            number: the number.

        Raises:
            NotFound: nothing has, or what had it is gone.
        """
        try:
            return self._known[number]
        except KeyError:
            raise NotFound(
                "That is gone: the program has moved.", received=number, hint="ask for the stack again."
            ) from None

    def forget(self) -> None:
        """Forget everything; no number is given twice."""
        self._known.clear()
        self._named.clear()
