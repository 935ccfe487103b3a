"""Reads the memory of a program that has run, from the arrays in its compiled calls."""

from collections import Counter
from collections.abc import Hashable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from fluidnb import memory
from fluidnb.errors import NotFound
from fluidnb.program import default_main_program
from fluidnb.program.constants import role_of
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.replay.segment import Segment
from fluidnb.values.copies import is_on_device
from fluidnb.values.place import Place
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.memory.buffer_aliases import BufferGroups
from fluidnb.viz.memory.model import ArenaMap, ArenaStep, Buffer, MemoryPicture
from fluidnb.viz.memory.pools import ARENA, read_pools


def read_memory(program: Any = None) -> MemoryPicture:
    """Reads the memory of the last run of a program, by default the main program, without running it."""
    program = default_main_program() if program is None else program
    runs = _runs(program)
    if not runs:
        raise NotFound(
            "This program has not run yet.", expected="a run, which places its buffers", received="none",
            hint="exe.run(program, feed=..., fetch_list=...), or %fluid run --feed x=...",
        )  # fmt: skip
    lowered = runs[-1]
    maps = [read_arena(_root(lowered))]
    bodies: dict[int, Segment] = {key[0]: body for key, body in lowered.bodies.items() if body.ops or body.next}
    maps += [arena for arena in (read_arena(bodies[index]) for index in sorted(bodies)) if arena.buffers]
    earlier = [read_arena(_root(p)) for p in runs[:-1] if p.version != lowered.version]
    pools = read_pools(program, lowered.place)
    return MemoryPicture(tuple(maps), pools, tuple(earlier), lowered.version != program.desc.version)


def arena_mark(program: Any) -> Hashable:
    """A fingerprint of the arenas of a program, to detect changes without reading them; None before a run."""
    runs = _runs(program)
    if not runs:
        return None
    lowered = runs[-1]
    return program.desc.version, id(lowered), id(_root(lowered)), tuple(map(id, lowered.bodies.values()))


def last_place(program: Any) -> Place | None:
    """The place of the last run of a program; None before a run."""
    runs = _runs(program)
    return runs[-1].place if runs else None


def read_arena(segment: Segment | None) -> ArenaMap:
    """The arena of a block over time; after a guard, the last specialization."""
    block = 0 if segment is None else segment.block.index
    steps: list[ArenaStep] = []
    buffers: list[Buffer] = []
    size = base = 0
    while segment is not None:
        counts = Counter(map(id, segment.ops))
        for op in segment.block.ops[segment.start : segment.end]:
            where = op.where()
            location, cell = ("", "") if where is None else (where.short(), where.cell or "")
            steps.append(ArenaStep(op.index, op.desc.optype, role_of(op.desc), counts[id(op)], location, cell))
        reading = _SegmentReader(segment)
        buffers += reading.buffers(base)
        size = max(size, reading.size)
        base += len(segment.ops)
        segment = next(reversed(segment.next.values())) if segment.next else None
    return ArenaMap(block, size, tuple(steps), tuple(buffers))


def _runs(program: Any) -> list[LoweredProgram]:
    """The lowered programs of recent runs, the last one last."""
    return [p for p in program_state(program.desc).recent if p.specializations]


def _root(lowered: LoweredProgram) -> Segment:
    segment: Segment = next(reversed(lowered.specializations.values())).root
    return segment


class _SegmentReader:
    """Finds the buffers of one segment: each array of its calls is a variable of the operator or workspace."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._where: dict[int, tuple[int, int] | None] = {}
        self._kept: list[Any] = []
        self.size = 0
        self._vars: dict[str, tuple[int, int]] = {}
        self._owners: dict[int, str] = {}
        for name, variable in segment.scope.vars.items():
            array = variable.value.array if type(variable.value) is LoDTensor else None
            extent = self._extent(array) if _is_array(array) else None
            if extent is not None:
                self._vars[name] = extent
                self._owners[id(array)] = name

    def buffers(self, base: int) -> list[Buffer]:
        """The buffers, with calls counted from ``base``."""
        segment, groups = self._segment, BufferGroups()
        touched: set[tuple[int, str]] = set()
        for t, ((function, args), op) in enumerate(zip(segment.calls, segment.ops, strict=True)):
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
                    low, high = extent
                    inside = [n for n in names if self._vars[n][0] <= low and high <= self._vars[n][1]]
                    groups.view(inside, *extent, t, id(op), id(array))
        for op in segment.block.ops[segment.start : segment.end]:
            for a, b in product(op.reads(), op.writes()):
                if (id(op), b) in touched or a not in self._vars or b not in self._vars:
                    continue
                (low, high), (start, end) = self._vars[a], self._vars[b]
                if low < end and start < high:  # no call writes it: the operator makes a view
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


def _arrays(function: Any, args: Any) -> Iterator[Any]:
    """The arrays of a call."""
    if isinstance(function, partial):
        yield from _arrays(function.func, (*function.args, *function.keywords.values()))
    else:
        yield from _inside(getattr(function, "__self__", None))
    yield from _inside(args)


def _inside(x: Any) -> Iterator[Any]:
    if _is_array(x):
        yield x
    elif type(x) in (tuple, list):
        for y in x:
            yield from _inside(y)


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) or is_on_device(x)


def _bounds(array: Any) -> tuple[int, int]:
    """The addresses of the first byte of an array and after the last one."""
    if isinstance(array, np.ndarray):
        return byte_bounds(array)
    steps = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    first = array.data.ptr
    return first + sum(n for n in steps if n < 0), first + sum(n for n in steps if n > 0) + array.itemsize
