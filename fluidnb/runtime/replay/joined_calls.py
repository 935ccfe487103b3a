"""Calls that take in those that follow them: a library's product, with what is computed of it element by element.

A joined call stands where the last of its calls was; the others become calls of nothing, so that places in the list
stay what they are.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from fluidnb.memory import root
from fluidnb.op.binder import Call
from fluidnb.runtime.native.segment_code import Calls, nothing

Array = Any
#: Calls after a product among which those are searched that it can take in.
_REACH = 64
#: The most calls that are one step of a product.
_STEP = 5
#: The first and the last call of memory that is not in the arena.
_FOR_EVER = 0, sys.maxsize


class Joining(Protocol):
    """A callable that can take in calls; it has ``takes_in``."""

    #: The position of the argument that it writes.
    target: int

    def takes_in(self, array: Array, calls: Sequence[Call]) -> tuple[Array, int] | None:
        """The array that the first of some calls write, and how many they are; None where this callable cannot.

        Args:
            array: the result of this callable until then; the calls follow each other, and the first reads it.
        """

    def joined(self, args: Sequence[Array], calls: Sequence[Call]) -> tuple[Any, tuple[Any, ...]] | None:
        """One call in place of this one and of calls that it takes in; None where that cannot be."""


def groups_of(calls: Sequence[Call], lives: dict[int, tuple[int, int]]) -> list[list[int]]:
    """The numbers of calls that can be one: each time a product and what it takes in.

    Args:
        lives: identity of the owner of a buffer in the arena -> the first and the last call that touches it.
    """
    groups: list[list[int]] = []
    taken: set[int] = set()
    for first, call in enumerate(calls):
        if hasattr(call[0], "takes_in"):
            group = _group(calls, first, lives, taken)
            if len(group) > 1:
                groups.append(group)
                taken.update(group)
    return groups


def _group(calls: Sequence[Call], first: int, lives: dict[int, tuple[int, int]], taken: set[int]) -> list[int]:
    """A product and the calls that it can take in: nothing between them may touch what they read or write."""
    product, args, _ = calls[first]
    array, group, used = args[product.target], [first], _owners(calls[first])
    k, end = first + 1, min(first + _REACH, len(calls))
    while k < end:
        touched, own = _owners(calls[k]), id(root(array))
        if own not in touched:
            if touched & used or not touched:  # a call without arrays may do anything
                break
            k += 1
            continue
        result = product.takes_in(array, calls[k : k + _STEP])
        if result is None:
            break
        after = k + result[1]
        step, new = range(k, after), id(root(result[0]))
        read, written = set[int](), set[int]()
        for i in step:
            for owners, more in zip((read, written), _read_and_written(calls[i]), strict=True):
                owners |= more
        if new != own and new in used | read:  # an array that a step reads would be written too early
            break
        gone = (written | {own}) - {new}
        if not taken.isdisjoint(step) or any(lives.get(one, _FOR_EVER)[1] >= after for one in gone):
            break  # somebody reads it later
        group += step
        used = used.union(*map(_owners, calls[k:after]))
        array, k = result[0], after
    return group


def extend(lives: dict[int, tuple[int, int]], calls: Sequence[Call], groups: Sequence[Sequence[int]]) -> None:
    """Let the buffers of each group live as long as the group, so that its calls may be one or many."""
    for group in groups:
        for owner in set().union(*(_owners(calls[k]) for k in group)) & lives.keys():
            first, last = lives[owner]
            lives[owner] = min(first, group[0]), max(last, group[-1])


def joined(plain: Calls, calls: Sequence[Call], groups: Sequence[Sequence[int]]) -> Calls:
    """The calls of a segment with one in place of each group."""
    if not groups:
        return plain
    new, ops, units = list(plain.calls), list(plain.ops), list(plain.units)
    together: set[int] = set()
    for group in groups:
        first, last = group[0], group[-1]
        one = calls[first][0].joined(calls[first][1], [calls[k] for k in group[1:]])
        if one is not None:
            for k in group:
                new[k] = nothing, ()
            new[last], ops[last] = one, ops[first]
            together.update(range(first + 1, last + 1))
    for k in sorted(together):
        units[k] = units[k - 1]
    return Calls(new, ops, units)


def _owners(call: Call) -> set[int]:
    """The identities of the owners of all arrays of a call."""
    return {id(root(array)) for array in arrays_of([getattr(call[0], "__self__", None), call[1], *call[2].values()])}


def _read_and_written(call: Call) -> tuple[set[int], set[int]]:
    """The identities of the owners of what a function of numpy reads, and of what it writes: its last argument."""
    *read, written = [*call[1], *call[2].values()]
    return {id(root(array)) for array in arrays_of(read)}, {id(root(array)) for array in arrays_of([written])}


def arrays_of(x: Any) -> Iterator[Array]:
    """The arrays in a value of a call, also in tuples and lists."""
    if isinstance(x, np.ndarray):
        yield x
    elif type(x) in (tuple, list):
        for y in x:
            yield from arrays_of(y)
