"""Moves placeholders of a segment's buffers, and the calls that use them, into its block's arena."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fluidnb import memory
from fluidnb.memory import root
from fluidnb.memory.arena import fullest, place
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.kernel_errors import failed
from fluidnb.runtime.replay.joined_calls import arrays_of, extend, groups_of
from fluidnb.runtime.replay.replay_memory import ReplayMemory
from fluidnb.runtime.scope import Scope
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.tensor import LoDTensor

Array = Any


class Life(NamedTuple):
    """The buffer of an array in an arena: which calls use it, and where it is."""

    first: int  # the first call that touches it
    last: int  # the last one
    offset: int  # bytes from its beginning to the array
    size: int  # its bytes
    buffer: int  # its number among those of the segment


def placed(
    calls: list[Any], ops: list[LoweredOp], bound: ReplayMemory, block: int, scope: Scope
) -> tuple[list[Any], Callable[[], dict[int, Life]], list[list[int]]]:
    """The calls of a segment with their buffers in the arena of its block.

    Returns:
        The calls; a function that gives the buffers: identity of each array of the calls in the arena -> its buffer;
        and the numbers of calls that may be made as one.
    """
    buffers, kind = bound.buffers, bound.kind
    # a variable that no call has written has memory on a device too
    lives = {} if kind is np.ndarray else dict.fromkeys(buffers, (0, len(calls)))
    touched, owners, where = _uses(calls, buffers, kind)
    lives.update(touched)
    groups = groups_of(calls, lives) if kind is np.ndarray else []
    extend(lives, calls, groups)
    rows = [(first, last, buffers[k][1], k) for k, (first, last) in lives.items()]
    offsets, size = place(rows)
    arena = bound.arenas.get(block)
    if arena is None or arena.nbytes < size:
        try:
            arena = DeviceContext.get(bound.place).empty((max(size, 64),), np.uint8)
        except memory.OutOfMemory as e:
            raise failed(e, ops[fullest(rows, len(ops))], scope) from e
        memory.tag(arena, f"arena of block {block}")
        bound.arenas[block] = arena  # what is bound to one that was too small keeps that
    mover = _Mover(arena, offsets, kind, buffers, owners)
    moved = calls[:]
    for t, numbers in where.items():
        function, args, kw = calls[t]
        if numbers is None:
            moved[t] = mover.function(function), tuple(map(mover, args)), {k: mover(v) for k, v in kw.items()}
            continue
        new = list(args)
        for i in numbers:
            new[i] = mover(args[i])
        moved[t] = function, tuple(new), kw
    for variable in scope.vars.values():
        if type(variable.value) is LoDTensor and isinstance(variable.value.array, kind):
            variable.value.array = mover(variable.value.array)
    bound.buffers = {}
    return moved, partial(mover.lives, lives, buffers), groups


def no_lives() -> dict[int, Life]:
    """The buffers of calls without an arena: none."""
    return {}


def lives_of(calls: list[Any], buffers: dict[int, tuple[Any, int]]) -> dict[int, Life]:
    """The buffers of calls on the host that are in their places: identity of each array in one -> its buffer."""
    touched = _uses(calls, buffers, np.ndarray)[0]
    numbers = {key: number for number, key in enumerate(touched)}
    found: dict[int, Life] = {}
    for function, args, kw in calls:
        for array in arrays_of([getattr(function, "__self__", None), args, *kw.values()]):
            key = id(root(array))
            if key in touched and id(array) not in found:
                owner, size = buffers[key]
                found[id(array)] = Life(*touched[key], memory.offset_of(array, owner), size, numbers[key])
    return found


def _uses(
    calls: list[Any], buffers: dict[int, tuple[Any, int]], kind: Any
) -> tuple[dict[int, tuple[int, int]], dict[int, int], dict[int, list[int] | None]]:
    """The uses of buffers by calls, found in one pass: binding spends a fifth of its time here.

    Returns:
        The first and the last call that touches each buffer; for each array of the calls the identity of its buffer,
        0 where it is in none; and for each call that touches buffers the numbers of the arguments that are arrays in
        them, None where arrays are elsewhere in the call.
    """
    ufunc = np.ufunc
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    owners: dict[int, int] = {}
    where: dict[int, list[int] | None] = {}
    for t, (function, args, kw) in enumerate(calls):
        inside: list[Any] = [] if type(function) is ufunc else [getattr(function, "__self__", None)]
        inside += kw.values()
        numbers = []
        for i, x in enumerate(args):
            if isinstance(x, kind):
                key = owners.get(id(x))
                if key is None:
                    key = id(root(x))
                    owners[id(x)] = key = key if key in buffers else 0
                if key:
                    first.setdefault(key, t)
                    last[key] = t
                    numbers.append(i)
            elif type(x) is tuple or type(x) is list:
                inside += x
        if numbers:
            where[t] = numbers
        for x in inside:  # which grows
            if isinstance(x, kind):
                key = id(root(x))
                if key in buffers:
                    first.setdefault(key, t)
                    last[key] = t
                    where[t] = None
            elif type(x) is tuple or type(x) is list:
                inside += x
    return {key: (t, last[key]) for key, t in first.items()}, owners, where


class _Mover:
    """Moves arrays into an arena; shape, strides and the offset from their owner stay."""

    def __init__(
        self, arena: Array, offsets: dict[int, int], kind: Any, buffers: dict[int, tuple[Any, int]],
        owners: dict[int, int],
    ) -> None:  # fmt: skip
        self._arena, self._offsets, self._kind, self._buffers, self._owners = arena, offsets, kind, buffers, owners
        self._moved: dict[int, Array] = {}
        self._kept: list[Any] = []

    def __call__(self, x: Any) -> Any:
        if isinstance(x, self._kind):
            moved = self._moved.get(id(x))
            if moved is None:
                key = self._owners.get(id(x))
                if key is None:
                    key = id(root(x))
                start = self._offsets.get(key)
                if start is None:
                    return x
                moved = self._moved[id(x)] = self._in_arena(x, self._buffers[key][0], start)
                self._kept.append(x)
            return moved
        if type(x) in (tuple, list):
            return type(x)(map(self, x))
        return x

    def _in_arena(self, x: Array, owner: Any, start: int) -> Array:
        """The array over the arena, where its owner begins at ``start``."""
        if isinstance(x, np.ndarray):
            return memory.moved(x, owner, self._arena, start)
        start += _offset(x, owner)
        return type(x)(x.shape, x.dtype, type(x.data)(self._arena.data.mem, start), x.strides)

    def lives(self, lives: dict[int, tuple[int, int]], buffers: dict[int, tuple[Any, int]]) -> dict[int, Life]:
        """The buffers of the arrays that were moved, by the identities of these."""
        numbers = {key: number for number, key in enumerate(lives)}
        found: dict[int, Life] = {}
        for x in self._kept:
            owner = root(x)
            first, last = lives[id(owner)]
            size = buffers[id(owner)][1]
            found[id(self._moved[id(x)])] = Life(first, last, _offset(x, owner), size, numbers[id(owner)])
        return found

    def function(self, f: Any) -> Any:
        """A bound method of an array moves with it."""
        owner = getattr(f, "__self__", None)
        return getattr(self(owner), f.__name__) if isinstance(owner, self._kind) else f


def _offset(x: Array, owner: Any) -> int:
    """Bytes from the beginning of an array's memory to the array."""
    if not isinstance(x, np.ndarray):
        return int(x.data.ptr - owner.ptr)
    return memory.offset_of(x, owner)
