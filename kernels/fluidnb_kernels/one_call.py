"""One call that makes many."""

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from fluidnb.op import Array

#: Makes a call, or records it: ``emit(function, *arguments, **more)``; what is written is an argument.
Emit = Callable[..., None]
#: Gives an array that no other call touches: ``scratch(shape, dtype)``.
Scratch = Callable[[Any, Any], Array]


class OneCall:
    """A function of arrays that makes many calls, listed from the second time on that the same arrays come.

    Views of each step are slow to make, and arrays of the interpreter come once only.

    Args:
        make: ``make(emit, *arguments)`` emits the calls; it reads no elements of arrays itself.
        apart: ``apart(emit, scratch, *arguments)`` emits calls with the same results for native code, where those of
            ``make`` are not the best for it.
    """

    __slots__ = ("_apart", "_kept", "_make", "_of")

    def __init__(self, make: Callable[..., None], apart: Callable[..., None] | None = None) -> None:
        self._make, self._apart = make, apart
        self._of: list[ref[Array]] = []
        self._kept: list[tuple[Any, tuple[Any, ...]]] | None = None

    def __call__(self, *args: Any) -> None:
        """Make the calls."""
        arrays = list(_arrays(args))
        if len(self._of) != len(arrays) or any(old() is not new for old, new in zip(self._of, arrays, strict=True)):
            self._of, self._kept = [ref(x) for x in arrays], None
            return self._make(operator.call, *args)
        if self._kept is None:
            self._kept = _recorded(self._make, *args)
        for function, operands in self._kept:
            function(*operands)
        return None

    def calls(self, *args: Any) -> tuple[list[tuple[Any, tuple[Any, ...]]], list[Array]]:
        """The calls that native code makes for some arguments, and the arrays that only these touch."""
        if self._apart is None:
            return _recorded(self._make, *args), []
        own: list[Array] = []

        def scratch(shape: Any, dtype: Any) -> Array:
            own.append(np.empty(shape, dtype))
            return own[-1]

        return _recorded(self._apart, scratch, *args), own


def _recorded(make: Callable[..., None], *args: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    found: list[tuple[Any, tuple[Any, ...]]] = []

    def record(function: Any, *operands: Any, **kw: Any) -> None:
        found.append((partial(function, **kw) if kw else function, operands))

    make(record, *args)
    return found


def _arrays(x: Any) -> Iterator[Array]:
    """The arrays in nested tuples and lists; None is none."""
    for y in x:
        if isinstance(y, (tuple, list)):
            yield from _arrays(y)
        elif y is not None:
            yield y
