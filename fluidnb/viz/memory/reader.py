"""Reads the memory of a program that has run, from the arrays in its compiled calls."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from fluidnb import memory
from fluidnb.errors import NotFound
from fluidnb.program import default_main_program
from fluidnb.program.op_roles import role_of
from fluidnb.runtime.compile.lowering import LoweredOp, LoweredProgram
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.replay.segment import Segment
from fluidnb.values.copies import is_on_device
from fluidnb.values.place import Place
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.memory.buffer_aliases import BufferGroups
from fluidnb.viz.memory.model import ArenaMap, ArenaStep, Buffer, MemoryPicture
from fluidnb.viz.memory.pools import ARENA, read_pools


def read_memory(program: Any = None) -> MemoryPicture:
    """Reads the memory of the last run of a program without running it.

    Args:
        program: the program; default the main program.

    Returns:
        The picture.

    Raises:
        NotFound: it has not run yet, or only in the debugger.

    Example:
        >>> x = fluid.layers.data("x", shape=[100])
        >>> loss = fluid.layers.mean(fluid.layers.relu(fluid.layers.tanh(x)))
        >>> out = fluid.Executor().run(feed={"x": np.ones((8, 100), "float32")}, fetch_list=[loss])
        >>> arena = read_memory().maps[0]
        >>> arena.peak, arena.peak_step.text
        (6400, 'op 1 (relu)')
    """
    program = default_main_program() if program is None else program
    plans = [p for p in program_state(program.desc).recent if p.entries]
    if not plans:
        raise NotFound(
            "This program has not run yet.", expected="a run, which places its buffers", received="none",
            hint="exe.run(program, feed=..., fetch_list=...), or %fluid run --feed x=...",
        )  # fmt: skip
    plan = plans[-1]
    maps = [read_arena(_root(plan))]
    bodies: dict[int, Segment] = {key[0]: node for key, node in plan.bodies.items() if node.ops or node.next}
    maps += [arena for arena in (read_arena(bodies[index]) for index in sorted(bodies)) if arena.buffers]
    earlier = [read_arena(_root(p)) for p in plans[:-1] if p.version != plan.version]
    pools = read_pools(program, plan.place)
    return MemoryPicture(tuple(maps), pools, tuple(earlier), plan.version != program.desc.version)


def arena_mark(program: Any) -> Hashable:
    """A fingerprint of the arenas of a program, to detect changes without reading them.

    Returns:
        The fingerprint; None when the program has not run yet.

    Example:
        >>> arena_mark(fluid.Program()) is None
        True
    """
    plans = [p for p in program_state(program.desc).recent if p.entries]
    if not plans:
        return None
    plan = plans[-1]
    return program.desc.version, id(plan), id(_root(plan)), tuple(map(id, plan.bodies.values()))


def last_place(program: Any) -> Place | None:
    """The place of the last run of a program.

    Returns:
        The place; None when it has not run yet.

    Example:
        >>> last_place(fluid.Program()) is None
        True
    """
    plans = [p for p in program_state(program.desc).recent if p.entries]
    return plans[-1].place if plans else None


def read_arena(node: Segment | None) -> ArenaMap:
    """The arena of a block over time; after a guard, the last specialization."""
    block = 0 if node is None else node.block.index
    steps: list[ArenaStep] = []
    buffers: list[Buffer] = []
    size = base = 0
    while node is not None:
        counts = {id(op): 0 for op in node.block.ops[node.start : node.end]}
        for op in node.ops:
            counts[id(op)] += 1
        steps += [_step(op, counts[id(op)]) for op in node.block.ops[node.start : node.end]]
        reading = _NodeReader(node)
        buffers += reading.buffers(base)
        size = max(size, reading.size)
        base += len(node.ops)
        node = next(reversed(node.next.values())) if node.next else None
    return ArenaMap(block, size, tuple(steps), tuple(buffers))


def _root(plan: LoweredProgram) -> Segment:
    node: Segment = next(reversed(plan.entries.values())).node
    return node


def _step(op: LoweredOp, calls: int) -> ArenaStep:
    where = op.where()
    return ArenaStep(op.index, op.desc.optype, role_of(op.desc), calls, "" if where is None else where.short())


class _NodeReader:
    """Finds the buffers of one node: each array of its calls is a variable of the operator or workspace."""

    def __init__(self, node: Segment) -> None:
        self._node = node
        self._where: dict[int, tuple[int, int] | None] = {}
        self._kept: list[Any] = []
        self.size = 0
        self._vars: dict[str, tuple[int, int]] = {}
        self._owners: dict[int, str] = {}
        for name, variable in node.scope.vars.items():
            array = variable.value.array if type(variable.value) is LoDTensor else None
            extent = self._extent(array) if _is_array(array) else None
            if extent is not None:
                self._vars[name] = extent
                self._owners[id(array)] = name

    def buffers(self, base: int) -> list[Buffer]:
        """The buffers, with calls counted from ``base``."""
        node, groups = self._node, BufferGroups()
        touched: set[tuple[int, str]] = set()
        for t, ((function, args), op) in enumerate(zip(node.calls, node.ops, strict=True)):
            names = [n for n in (*op.writes(), *op.reads()) if n in self._vars]
            for array in _arrays(function, args):
                extent = self._extent(array)
                if extent is None:
                    continue
                known = self._owners.get(id(array))
                if known is not None:
                    groups.touch(known, *extent, t)
                    touched.add((id(op), known))
                else:
                    inside = [n for n in names if _within(extent, self._vars[n])]
                    groups.view(inside, *extent, t, id(op), id(array))
        for op in node.block.ops[node.start : node.end]:
            for a, b in product(op.reads(), op.writes()):
                if (id(op), b) in touched or a not in self._vars or b not in self._vars:
                    continue
                if _overlap(self._vars[a], self._vars[b]):  # no call writes it: the operator makes a view
                    groups.join(a, b)
        return [Buffer(g.names, g.low, g.high - g.low, base + g.first, base + g.last) for g in groups.done()]

    def _extent(self, array: Any) -> tuple[int, int] | None:
        """First and last byte of an array in the arena; None if elsewhere."""
        if id(array) not in self._where:
            self._kept.append(array)
            block = memory.owner(array)
            extent = None
            if block is not None and block.tag.startswith(ARENA) and array.size:
                self.size = max(self.size, block.nbytes)
                low, high = _bounds(array)
                extent = low - block.ptr, high - block.ptr
            self._where[id(array)] = extent
        return self._where[id(array)]


def _within(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return other[0] <= one[0] and one[1] <= other[1]


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _arrays(function: Any, args: Any) -> Iterator[Any]:
    """The arrays of a call."""
    if isinstance(function, partial):
        yield from _arrays(function.func, (*function.args, *function.keywords.values()))
    else:
        yield from _inside(getattr(function, "__self__", None))
    yield from _inside(args)


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) or is_on_device(x)


def _bounds(array: Any) -> tuple[int, int]:
    """The addresses of the first byte of an array and after the last one."""
    if isinstance(array, np.ndarray):
        return byte_bounds(array)
    steps = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    first = array.data.ptr
    return first + sum(n for n in steps if n < 0), first + sum(n for n in steps if n > 0) + array.itemsize


def _inside(x: Any) -> Iterator[Any]:
    if _is_array(x):
        yield x
    elif type(x) in (tuple, list):
        for y in x:
            yield from _inside(y)
