"""What is drawn of memory: buffers over time in the arena of a block, and who holds the rest. Plain data, no faces."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from fluidnb.memory import Stats


@dataclass(frozen=True, slots=True)
class ArenaStep:
    """An operator on the axis of time.

    Args:
        index: its position in its block.
        type: its type.
        role: ``forward``, ``backward`` or ``optimizer``.
        calls: calls that it makes; 0 for one that only gives memory another name, or that ran while binding.
        place: the cell or file line that made it.
    """

    index: int
    type: str
    role: str = "forward"
    calls: int = 1
    place: str = ""

    @property
    def text(self) -> str:
        """It in two words."""
        return f"op {self.index} ({self.type})"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A stretch of an arena for a stretch of time.

    Args:
        names: the variables that live in it, in the order of time; empty for workspace.
        offset: its first byte in the arena.
        size: bytes.
        first: the first call that touches it, counted through the block.
        last: the last one.
    """

    names: tuple[str, ...]
    offset: int
    size: int
    first: int
    last: int

    def meets(self, other: Buffer) -> bool:
        """Whether both hold a byte at the same time."""
        in_time = self.first <= other.last and other.first <= self.last
        return in_time and self.offset < other.offset + other.size and other.offset < self.offset + self.size


@dataclass(frozen=True)
class ArenaMap:
    """The arena of one block over time.

    Args:
        block: index of the block.
        size: bytes of the arena.
        steps: its operators in order.
        buffers: what lies in it.

    Example:
        >>> a, b = Buffer(("a",), 0, 64, 0, 1), Buffer(("b",), 64, 32, 1, 2)
        >>> arena = ArenaMap(0, 128, (ArenaStep(0, "relu"), ArenaStep(1, "tanh"), ArenaStep(2, "mean")), (a, b))
        >>> arena.live, arena.peak, arena.peak_step.text, arena.fragmentation
        ([64, 96, 32], 96, 'op 1 (tanh)', 0.25)
    """

    block: int
    size: int
    steps: tuple[ArenaStep, ...] = ()
    buffers: tuple[Buffer, ...] = ()

    @cached_property
    def starts(self) -> list[int]:
        """The first call of each operator, and behind the last the number of all calls."""
        return list(accumulate((step.calls for step in self.steps), initial=0))

    @cached_property
    def live(self) -> list[int]:
        """Bytes held during each call."""
        change = [0] * (self.starts[-1] + 1)
        for buffer in self.buffers:
            change[buffer.first] += buffer.size
            change[buffer.last + 1] -= buffer.size
        return list(accumulate(change))[:-1]

    @cached_property
    def live_by_step(self) -> list[int]:
        """The most bytes held at once during each operator; where it makes no calls, as before it."""
        found: list[int] = []
        for first, end in zip(self.starts, self.starts[1:], strict=False):
            found.append(max(self.live[first:end], default=found[-1] if found else 0))
        return found

    @property
    def peak(self) -> int:
        """The most bytes held at once."""
        return max(self.live, default=0)

    @property
    def peak_call(self) -> int:
        """The first call at which that much is held."""
        return self.live.index(self.peak) if self.live else 0

    @property
    def peak_step(self) -> ArenaStep:
        """The operator of that call."""
        return self.steps[self.step_of(self.peak_call)]

    @property
    def at_peak(self) -> list[Buffer]:
        """What is alive then, the largest first."""
        call = self.peak_call
        return sorted((b for b in self.buffers if b.first <= call <= b.last), key=lambda b: -b.size)

    @property
    def fragmentation(self) -> float:
        """The share of the arena that is not held even at the peak."""
        return 1 - self.peak / self.size if self.size else 0.0

    @property
    def unshared(self) -> int:
        """Bytes that it would take if no two buffers shared any."""
        return sum(b.size for b in self.buffers)

    def step_of(self, call: int) -> int:
        """Which of the steps makes a call."""
        return bisect_right(self.starts, call) - 1

    def maker(self, buffer: Buffer) -> ArenaStep:
        """The operator that touches a buffer first."""
        return self.steps[self.step_of(buffer.first)]

    def called(self, buffer: Buffer) -> str:
        """The name of a buffer: its first variable, or whose workspace it is."""
        return buffer.names[0] if buffer.names else f"workspace of {self.maker(buffer).type}"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds memory of the pool outside the map.

    Args:
        kind: ``arena``, ``persistable``, ``own buffer`` (fed, fetched, or seen by several blocks) or ``other``.
        name: the variable, or what the memory is tagged with.
        bytes: how much, rounding included.
        count: blocks.
    """

    kind: str
    name: str
    bytes: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class PoolPicture:
    """The pool of one place.

    Args:
        stats: its numbers.
        holders: who holds its blocks, the largest first.
        device: the name of the device and what drives it; empty for the host.
        limit: bytes that the pool may take from the system in all.
    """

    stats: Stats
    holders: tuple[Holder, ...] = ()
    device: str = ""
    limit: int = 0


@dataclass(frozen=True, slots=True)
class MemoryPicture:
    """The memory of a program that has run.

    Args:
        maps: the arenas, that of block 0 first.
        pools: the pool of the place on which it ran, then those of other places that hold something.
        earlier: the arena of block 0 as it was in runs before the program was changed, the oldest first.
        changed: whether the program was changed since it ran.
    """

    maps: tuple[ArenaMap, ...]
    pools: tuple[PoolPicture, ...] = ()
    earlier: tuple[ArenaMap, ...] = ()
    changed: bool = False

    @property
    def pool(self) -> Stats | None:
        """Numbers of the pool of the place on which it ran."""
        return self.pools[0].stats if self.pools else None

    @property
    def holders(self) -> tuple[Holder, ...]:
        """Who holds blocks there, the largest first."""
        return self.pools[0].holders if self.pools else ()
