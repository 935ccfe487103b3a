"""Memory that shows reads and writes outside of buffers: poison where nothing was written, canaries around each.

Two runs with two poisons give the same results unless something read what nobody had written. For a process that does
nothing else: `install` cannot be undone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb import memory
from fluidnb.memory import block as blocks
from fluidnb.memory import flags, views
from fluidnb.memory.arena import ALIGN, Life
from fluidnb.runtime.interpreter import interpreter as machine
from fluidnb.runtime.replay import buffer_placement as placing
from fluidnb.runtime.replay import replay_memory as bound

#: NaN, -1, True; and small numbers.
POISONS = (0xFF, 0x11)
#: Bytes of a canary, and their value.
GAP, CANARY = 64, 0xC5

_empty, _empty_like = np.empty, np.empty_like


class Guards:
    """The canaries, and the poison of the run under way."""

    def __init__(self) -> None:
        self.poison = POISONS[0]
        self.blocks: dict[int, int] = {}  # first byte of a block -> its size
        self.gaps: list[tuple[int, int]] = []  # offsets in the arena that is about to be allocated
        self.arenas: list[tuple[Any, list[tuple[int, int]]]] = []
        self.broken: list[str] = []
        self.largest = 0

    def fill(self, array: Any) -> None:
        """Poison an array of any strides."""
        if array.dtype.kind == "b":
            array[...] = self.poison == POISONS[0]
        elif not array.dtype.hasobject and array.itemsize:
            array[...] = np.frombuffer(bytes([self.poison]) * array.itemsize, array.dtype)[0]

    def poisoned(self, array: Any) -> Any:
        """A new array, poisoned."""
        self.fill(array)
        return array

    def check(self, ptr: int, what: str) -> None:
        """Note a canary that changed."""
        for start in (ptr - GAP, ptr + self.blocks[ptr]):
            if ctypes.string_at(start, GAP) != bytes([CANARY]) * GAP:
                self.broken.append(f"canary {'before' if start < ptr else 'behind'} {what}")

    def verify(self) -> list[str]:
        """Bytes outside of buffers that changed since the last call."""
        for ptr in list(self.blocks):
            if ptr in self.blocks:  # its destructor may come at any moment
                self.check(ptr, f"a block of {self.blocks[ptr]} bytes")
        for arena, gaps in self.arenas:
            for start, end in gaps:
                if (arena[start:end] != CANARY).any():
                    self.broken.append(f"canary in an arena of {arena.nbytes} bytes at {start}")
        said, self.broken, self.arenas = self.broken, [], []
        return said


GUARDS = Guards()


def _place(lives: Sequence[Life]) -> tuple[dict[int, int], int]:
    """Places of an arena's buffers, with a gap around each."""
    offsets: dict[int, int] = {}
    at, GUARDS.gaps = GAP, [(0, GAP)]
    for _, _, size, key in lives:
        offsets[key] = at
        end = -(-(at + size) // ALIGN) * ALIGN + GAP
        GUARDS.gaps.append((at + size, end))
        at = end
    GUARDS.largest = max(at, GUARDS.largest + ALIGN)  # so that no arena serves twice, with other gaps
    return offsets, GUARDS.largest


def _tag(array: Any, text: str) -> None:
    """Write the canaries of an arena when it is named."""
    if text.startswith("arena of") and isinstance(array, np.ndarray):
        for start, end in GUARDS.gaps:
            array[start:end] = CANARY
        GUARDS.arenas.append((array, GUARDS.gaps))


def _make(self: Any, pool: Any, nbytes: int) -> None:
    """A block with a canary on each side."""
    self.pool, self.nbytes = pool, nbytes
    raw = pool.alloc(nbytes + 2 * GAP)
    ctypes.memset(raw, CANARY, nbytes + 2 * GAP)
    self.ptr = raw + GAP
    self.__array_interface__ = {"version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (self.ptr, False)}
    GUARDS.blocks[self.ptr] = nbytes


def _drop(self: Any) -> None:
    ptr = getattr(self, "ptr", None)
    if ptr in GUARDS.blocks:
        GUARDS.check(ptr, f"a block of {self.nbytes} bytes")
        del GUARDS.blocks[ptr]
        self.pool.free_later(ptr - GAP)


def install() -> None:
    """Guard all memory that the process takes from now on."""
    blocks.Block.__init__, blocks.Block.__del__ = _make, _drop  # type: ignore[method-assign]
    blocks.poison = GUARDS.fill
    placing.place, memory.tag = _place, _tag
    machine._SMALL = -1  # small arrays share no block
    flags.values["init_allocated_mem"] = True
    np.empty = lambda *args, **kw: GUARDS.poisoned(_empty(*args, **kw))
    np.empty_like = lambda *args, **kw: GUARDS.poisoned(_empty_like(*args, **kw))


def poison(value: int) -> None:
    """Choose the poison of what is allocated from now on."""
    GUARDS.poison = value
    for reserve in (bound._sketch,):
        pages: Any = reserve._pages
        whole: Any = views.view_of(pages, (len(pages),), np.uint8)
        whole[: 1 << 16] = value
