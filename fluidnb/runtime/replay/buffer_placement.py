"""Moves placeholders of a node's buffers, and the calls that use them, into its block's arena."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb import memory
from fluidnb.runtime.compile.arena import fullest, place
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.kernel_errors import failed
from fluidnb.runtime.replay.replay_memory import ReplayMemory, root
from fluidnb.runtime.scope import Scope
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.tensor import LoDTensor

Array = Any


def placed(calls: list[Any], ops: list[LoweredOp], bound: ReplayMemory, block: int, scope: Scope) -> list[Any]:
    """Move the buffers of a node into the arena of its block.

    Args:
        calls: functions with their arguments, over placeholders.
        ops: the operator of each.
        bound: knows the buffers; it has none any more afterwards.
        block: the block's number.
        scope: where its variables are; they hold the moved arrays afterwards.

    Returns:
        The calls over the moved arrays.

    Raises:
        OutOfMemory: not enough memory; it names the operator that needs the most.
    """
    buffers, kind = bound.buffers, bound.kind
    # a variable that no call has written has memory on a device too
    lives = {} if kind is np.ndarray else dict.fromkeys(buffers, (0, len(calls)))
    lives.update(_lives(calls, bound))
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
    mover = _Mover(arena, offsets, kind)
    moved = [
        (mover.function(f), tuple(map(mover, args)), {k: mover(v) for k, v in kw.items()} if kw else kw)
        for f, args, kw in calls
    ]
    for variable in scope.vars.values():
        if type(variable.value) is LoDTensor and isinstance(variable.value.array, kind):
            variable.value.array = mover(variable.value.array)
    bound.buffers = {}
    return moved


def _lives(calls: list[Any], bound: ReplayMemory) -> dict[int, tuple[int, int]]:
    """The first and the last call that touches each buffer."""
    buffers, kind = bound.buffers, bound.kind
    lives: dict[int, tuple[int, int]] = {}
    owners: dict[int, int] = {}

    def meet(x: Any, t: int) -> None:
        if isinstance(x, kind):
            key = owners.get(id(x))
            if key is None:
                key = owners[id(x)] = id(root(x))
            if key in buffers:
                lives[key] = (lives[key][0] if key in lives else t, t)
        elif type(x) in (tuple, list):
            for y in x:
                meet(y, t)

    for t, (function, args, kw) in enumerate(calls):
        meet(getattr(function, "__self__", None), t)
        meet(args, t)
        if kw:
            meet(list(kw.values()), t)
    return lives


class _Mover:
    """Gives arrays their place in an arena, keeping shape, strides and the offset from their owner."""

    def __init__(self, arena: Array, offsets: dict[int, int], kind: Any) -> None:
        self._arena, self._offsets, self._kind = arena, offsets, kind
        self._moved: dict[int, Array] = {}
        self._kept: list[Any] = []

    def __call__(self, x: Any) -> Any:
        if isinstance(x, self._kind):
            found = self._moved.get(id(x))
            if found is None:
                owner = root(x)
                start = self._offsets.get(id(owner))
                if start is None:
                    return x
                found = self._laid(x, owner, start)
                self._moved[id(x)] = found
                self._kept.append(x)
            return found
        if type(x) in (tuple, list):
            return type(x)(map(self, x))
        return x

    def _laid(self, x: Array, owner: Any, start: int) -> Array:
        """The array over the arena, where its owner begins at ``start``."""
        if isinstance(x, np.ndarray):
            if owner is not x:
                start += x.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
            return memory.view_of(self._arena, x.shape, x.dtype, start, x.strides)
        there = type(x.data)(self._arena.data.mem, start + x.data.ptr - owner.ptr)
        return type(x)(x.shape, x.dtype, there, x.strides)

    def function(self, f: Any) -> Any:
        """A bound method of an array moves with it."""
        owner = getattr(f, "__self__", None)
        return getattr(self(owner), f.__name__) if isinstance(owner, self._kind) else f
