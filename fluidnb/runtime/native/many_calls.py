"""Calls that stand for many, as kernels of recurrent networks emit them: taken apart, for native code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fluidnb.memory import address
from fluidnb.runtime.native.statements import bounds
from fluidnb.runtime.replay.buffer_placement import Life

if TYPE_CHECKING:
    from fluidnb.runtime.native.segment_code import Calls


class ManyCalls(Protocol):
    """A callable that makes many calls; it has ``calls``."""

    def __call__(self, *args: Any) -> None:
        """Make them."""

    def calls(self, *args: Any) -> tuple[list[tuple[Any, tuple[Any, ...]]], list[Any]]:
        """Give calls with the same results for the same arguments, and the arrays that only these touch."""


def any_of(plain: Calls) -> bool:
    """Whether some calls stand for many."""
    return any(hasattr(function, "calls") for function, _ in plain.calls)


def taken_apart(plain: Calls, lives: Mapping[int, Any]) -> tuple[Calls, dict[int, Any]]:
    """The calls with those in place that they stand for, and the buffers by the numbers of these calls."""
    calls: list[tuple[Any, tuple[Any, ...]]] = []
    ops, units, first = list[Any](), list[Any](), [0]
    own: list[tuple[Any, int, int]] = []
    parts: dict[int, tuple[Any, int]] = {}
    for call, op, unit in zip(*plain, strict=True):
        function, args = call
        if hasattr(function, "calls"):
            more, scratch = function.calls(*args)
            used = {id(array) for array in _operands(more)}  # a buffer whose array is gone might be taken for another's
            own += [(array, len(calls), len(calls) + len(more) - 1) for array in scratch if id(array) in used]
            parts.update(_parts(args, more, lives))
        else:
            more = [call]
        calls += more
        ops += [op] * len(more)
        units += [unit] * len(more)
        first.append(len(calls))
    moved = {key: life._replace(first=first[life.first], last=first[life.last + 1] - 1) for key, life in lives.items()}
    for key, (array, offset) in parts.items():
        moved[key] = moved[id(array)]._replace(offset=moved[id(array)].offset + offset)
    for k, (array, begin, end) in enumerate(own):  # numbers below those of the buffers of the arena
        moved[id(array)] = Life(begin, end, 0, array.nbytes, -1 - k)
    return plain._replace(calls=calls, ops=ops, units=units), moved


def _parts(args: Any, calls: Any, lives: Mapping[int, Any]) -> Iterator[tuple[int, tuple[Any, int]]]:
    """Identity of each array of calls that is part of an argument with a buffer -> that argument, bytes before it."""
    whole = [(*bounds(array), array) for array in _arrays(args) if id(array) in lives]
    for array in _operands(calls):
        if id(array) not in lives:
            low, high = bounds(array)
            for start, end, argument in whole:
                if start <= low and high <= end:
                    yield id(array), (argument, address(array) - address(argument))
                    break


def _operands(calls: Any) -> Iterator[Any]:
    """The arrays of calls."""
    for function, operands in calls:
        yield from _arrays((*operands, *(function.keywords.values() if type(function) is partial else ())))


def _arrays(x: Any) -> Iterator[Any]:
    """The arrays in nested tuples and lists."""
    for y in x:
        if isinstance(y, (tuple, list)):
            yield from _arrays(y)
        elif isinstance(y, np.ndarray):
            yield y
