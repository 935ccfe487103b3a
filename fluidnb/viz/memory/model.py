"""Memory of a program as plain data: buffers over time in the arena of each block, and the pools."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from fluidnb.memory import Stats, size_text


@dataclass(frozen=True, slots=True)
class ArenaStep:
    """An operator on the time axis of an arena."""

    index: int  # its position in its block
    type: str
    role: str = "forward"  # ``forward``, ``backward`` or ``optimizer``
    calls: int = 1  # number of its calls; 0 for one that only makes a view, or that ran while binding
    location: str = ""  # the cell or file line that created it
    cell: str = ""  # the notebook cell that created it; empty outside notebooks

    @property
    def text(self) -> str:
        """Short description."""
        return f"op {self.index} ({self.type})"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A byte range of an arena for a range of time."""

    names: tuple[str, ...]  # its variables in order of time; empty for workspace
    offset: int  # its first byte in the arena
    size: int  # bytes
    first: int  # index of the first call that accesses it
    last: int  # index of the last one

    def meets(self, other: Buffer) -> bool:
        """Whether both occupy a byte at the same time."""
        in_time = self.first <= other.last and other.first <= self.last
        return in_time and self.offset < other.offset + other.size and other.offset < self.offset + self.size


@dataclass(frozen=True)
class ArenaMap:
    """The arena of one block over time."""

    block: int  # index of the block
    size: int  # bytes of the arena
    steps: tuple[ArenaStep, ...] = ()  # its operators in order
    buffers: tuple[Buffer, ...] = ()

    @cached_property
    def starts(self) -> list[int]:
        """The first call of each operator, then the number of all calls."""
        return list(accumulate((step.calls for step in self.steps), initial=0))

    @cached_property
    def live(self) -> list[int]:
        """Live bytes during each call."""
        change = [0] * (self.starts[-1] + 1)
        for buffer in self.buffers:
            change[buffer.first] += buffer.size
            change[buffer.last + 1] -= buffer.size
        return list(accumulate(change))[:-1]

    @cached_property
    def live_by_step(self) -> list[int]:
        """Maximum of live bytes during each operator; the previous one if it makes no calls."""
        peaks: list[int] = []
        for first, end in zip(self.starts, self.starts[1:], strict=False):
            peaks.append(max(self.live[first:end], default=peaks[-1] if peaks else 0))
        return peaks

    @property
    def peak(self) -> int:
        """Maximum of live bytes."""
        return max(self.live, default=0)

    @property
    def peak_call(self) -> int:
        """The first call at the peak."""
        return self.live.index(self.peak) if self.live else 0

    @property
    def peak_step(self) -> ArenaStep:
        """The operator at the peak."""
        return self.steps[self.step_of(self.peak_call)]

    @property
    def at_peak(self) -> list[Buffer]:
        """The buffers live at the peak, the largest first."""
        call = self.peak_call
        return sorted((b for b in self.buffers if b.first <= call <= b.last), key=lambda b: -b.size)

    @property
    def peak_by_cell(self) -> list[tuple[str, int]]:
        """Live bytes at the peak by the cell of the operator that accesses a buffer first, the most first."""
        sizes: dict[str, int] = {}
        for buffer in self.at_peak:
            cell = self.maker(buffer).cell
            sizes[cell] = sizes.get(cell, 0) + buffer.size
        return sorted(sizes.items(), key=lambda item: -item[1])

    @property
    def fragmentation(self) -> float:
        """The fraction of the arena that is unused at the peak."""
        return 1 - self.peak / self.size if self.size else 0.0

    @property
    def unshared(self) -> int:
        """Bytes of all buffers without sharing."""
        return sum(b.size for b in self.buffers)

    @property
    def words(self) -> str:
        """Its size and peak in words."""
        return f"arena {size_text(self.size)}, peak {size_text(self.peak)}"

    def step_of(self, call: int) -> int:
        """Index of the step of a call."""
        return bisect_right(self.starts, call) - 1

    def maker(self, buffer: Buffer) -> ArenaStep:
        """The operator that accesses a buffer first."""
        return self.steps[self.step_of(buffer.first)]

    def called(self, buffer: Buffer) -> str:
        """The name of a buffer: its first variable, or the operator of a workspace."""
        return buffer.names[0] if buffer.names else f"workspace of {self.maker(buffer).type}"


@dataclass(frozen=True, slots=True)
class Holder:
    """A holder of memory of a pool: a variable, an arena, or another tag."""

    kind: str  # ``arena``, ``persistable``, ``separate buffer`` (fed, fetched, or used by several blocks) or ``other``
    name: str  # the variable or tag
    bytes: int  # size with rounding
    count: int = 1  # number of blocks


@dataclass(frozen=True, slots=True)
class PoolPicture:
    """The pool of one place."""

    stats: Stats
    holders: tuple[Holder, ...] = ()  # the holders of its blocks, the largest first
    device: str = ""  # name and backend of the device; empty for the host
    limit: int = 0  # bytes of the pool at most


@dataclass(frozen=True, slots=True)
class MemoryPicture:
    """The memory of a program that has run."""

    maps: tuple[ArenaMap, ...]  # the arenas, that of block 0 first
    pools: tuple[PoolPicture, ...] = ()  # the pool of the place of the run, then non-empty pools of other places
    earlier: tuple[ArenaMap, ...] = ()  # the arenas of block 0 of runs before the program was changed, the oldest first
    changed: bool = False  # whether the program was changed since it ran

    @property
    def pool(self) -> Stats | None:
        """Statistics of the pool of the place of the run."""
        return self.pools[0].stats if self.pools else None

    @property
    def holders(self) -> tuple[Holder, ...]:
        """The holders of its blocks, the largest first."""
        return self.pools[0].holders if self.pools else ()
