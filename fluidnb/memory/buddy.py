"""The pool of one place: best fit over chunks of its system allocator, splitting and merging neighbours."""

import operator
import threading
from bisect import bisect_left, insort
from collections import deque

from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.memory.stats import Span, Stats, size_text
from fluidnb.memory.system_allocator import SystemAllocator
from fluidnb.memory.vlog import VLOG, vlog_is_on


class OutOfMemory(EnforceNotMet, MemoryError):
    """A place has too little memory for a request; the text names the largest owners."""


class BuddyAllocator:
    """Blocks out of large chunks: best fit, split, and on free merged with free neighbours on both sides.

    Sizes are rounded up to `min_chunk`; requests above `max_chunk` go straight to the system allocator, and so does one
    for which no new chunk can be had. All bookkeeping is outside the memory itself, so that it works for devices too.
    Safe to use from several threads, from destructors that run at any moment (`free_later`), and after an exception
    that came in the middle (Ctrl-C): then the free lists are rebuilt from the live blocks.

    Args:
        system: where chunks come from.
        min_chunk: granularity in bytes, a power of two.
        max_chunk: bytes of a chunk of the arena, a multiple of `min_chunk`.
        label: the place's name in messages.

    Example:
        >>> from fluidnb.memory.system_allocator import CPUAllocator
        >>> pool = BuddyAllocator(CPUAllocator(), 4096, 1 << 20)
        >>> a, b = pool.alloc(100), pool.alloc(5000)
        >>> pool.used, b - a
        (12288, 4096)
        >>> pool.free(a); pool.free(b); pool.used
        0
    """

    def __init__(self, system: SystemAllocator, min_chunk: int, max_chunk: int, label: str = "CPUPlace") -> None:
        self.system, self.min_chunk, self.max_chunk, self.label = system, min_chunk, max_chunk, label
        self.used = self.peak = self.allocations = 0
        self.tags: dict[int, str] = {}
        self._live: dict[int, tuple[int, int]] = {}  # block -> (size, requested bytes)
        self._free: list[tuple[int, int]] = []  # (size, block), sorted: the best fit is a bisection away
        self._free_size: dict[int, int] = {}  # free block -> size
        self._free_end: dict[int, int] = {}  # end of a free block -> block
        self._chunks: dict[int, tuple[int, int]] = {}  # chunk of the arena -> (size, system index)
        self._direct: dict[int, tuple[int, int]] = {}  # block straight from the system -> (size, system index)
        self._dead: deque[int] = deque()
        self._lock = threading.Lock()
        self._busy = False  # whether a change is in progress, or was interrupted

    def alloc(self, size: int) -> int:
        """The address of a new block of at least ``size`` bytes, aligned to `min_chunk` within its chunk."""
        try:
            size = operator.index(size)
        except TypeError:
            raise OpTypeError(f"Cannot allocate {size!r} on {self.label}.", expected="a number of bytes") from None
        if size < 0:
            raise OpValueError(f"Cannot allocate {size} bytes on {self.label}.", expected="a size of 0 or more")
        rounded = -(-size // self.min_chunk) * self.min_chunk or self.min_chunk
        with self._lock:
            self._start()
            if self._dead:
                self._free_dead()
            ptr = self._take(rounded, size)
            self.used += self._live[ptr][0]
            self.allocations += 1
            if self.used > self.peak:
                self.peak = self.used
            self._busy = False
        self._free_left_behind()
        if vlog_is_on(10):
            VLOG(10, f"Allocate {size} bytes on {self.label}")
            VLOG(10, f"  pointer={ptr:#x}")
        return ptr

    def free(self, ptr: int) -> None:
        """Frees the block at an address that `alloc` returned."""
        with self._lock:
            self._start()
            known = ptr in self._live
            if known:
                self._give_back(ptr)
            self._busy = False
        self._free_left_behind()
        if not known:
            raise OpValueError(
                f"Cannot free pointer {hex(ptr) if isinstance(ptr, int) else repr(ptr)} on {self.label}.",
                expected="an address from alloc on this place, freed once",
                hint="it was freed before, or belongs to another place.",
            )

    def free_later(self, ptr: int) -> None:
        """Frees a block now or, when the pool is busy, at the end of its current operation.

        A destructor may run inside `alloc` of the same thread (the garbage collector starts at any moment), where
        taking the lock would hang. So the block is queued, and whoever holds the lock frees it.
        """
        self._dead.append(ptr)
        self._free_left_behind()

    def release_idle(self) -> int:
        """Returns chunks without live blocks to the system; their total bytes."""
        released = 0
        with self._lock:
            self._start()
            self._free_dead()
            for chunk, (size, index) in list(self._chunks.items()):
                if self._free_size.get(chunk) == size:
                    self._unlist(chunk)
                    del self._chunks[chunk]
                    self.system.free(chunk, size, index)
                    released += size
            self._busy = False
        self._free_left_behind()
        return released

    def contains(self, ptr: int) -> bool:
        """Whether an address is in a chunk of this pool or a block straight from the system, live or free."""
        with self._lock:
            ranges = [*self._chunks.items(), *self._direct.items()]
        return any(start <= ptr < start + size for start, (size, _) in ranges)

    def reset_peak(self) -> None:
        """Resets the peak to the current use."""
        with self._lock:
            self.peak = self.used

    def stats(self) -> Stats:
        """The current `fluidnb.memory.Stats` of this pool."""
        with self._lock:
            self._start()
            self._free_dead()
            self._busy = False
            reserved = sum(size for size, _ in [*self._chunks.values(), *self._direct.values()])
            live = [Span(p, s, requested, self.tags.get(p, "")) for p, (s, requested) in self._live.items()]
            free = sum(self._free_size.values())
            largest = self._free[-1][0] if self._free else 0
            result = Stats(self.label, self.used, self.peak, reserved, free, largest, self.allocations, live)
        self._free_left_behind()
        return result

    def spans(self) -> list[tuple[int, int, list[Span]]]:
        """The memory map: (chunk, size, its live and free spans by address) for each chunk by address."""
        with self._lock:
            self._start()
            self._free_dead()
            self._busy = False
            blocks = [Span(p, s, requested, self.tags.get(p, "")) for p, (s, requested) in self._live.items()]
            blocks += [Span(p, s, None, "") for p, s in self._free_size.items()]
            chunks = sorted((p, s) for p, (s, _) in [*self._chunks.items(), *self._direct.items()])
        self._free_left_behind()
        blocks.sort(key=lambda b: b.ptr)
        starts = [b.ptr for b in blocks]
        return [(p, s, blocks[bisect_left(starts, p) : bisect_left(starts, p + s)]) for p, s in chunks]

    # What follows runs under the lock.

    def _start(self) -> None:
        """Begins a change; after an interrupted one, first rebuilds the free lists from the live blocks."""
        if self._busy:
            self._free.clear()
            self._free_size.clear()
            self._free_end.clear()
            for ptr in [p for p in self._direct if p not in self._live]:
                self.system.free(ptr, *self._direct.pop(ptr))
            self.used = sum(size for size, _ in self._live.values())
            for chunk, (size, _) in self._chunks.items():
                at = chunk
                for ptr in [*sorted(p for p in self._live if chunk <= p < chunk + size), chunk + size]:
                    if ptr > at:
                        self._list(at, ptr - at)
                    at = ptr + self._live[ptr][0] if ptr in self._live and ptr < chunk + size else ptr
        self._busy = True

    def _take(self, rounded: int, requested: int) -> int:
        if rounded > self.max_chunk:
            return self._take_direct(rounded, requested)
        i = bisect_left(self._free, (rounded, 0))
        if i == len(self._free):
            try:
                chunk, index = self.system.alloc(self.max_chunk)
            except MemoryError:  # no whole chunk left: maybe just this much
                return self._take_direct(rounded, requested)
            self._chunks[chunk] = (self.max_chunk, index)
            self._list(chunk, self.max_chunk)
            i = bisect_left(self._free, (rounded, 0))
        size, ptr = self._free[i]
        self._unlist(ptr)
        if size > rounded:
            self._list(ptr + rounded, size - rounded)
        self._live[ptr] = (rounded, requested)
        return ptr

    def _take_direct(self, rounded: int, requested: int) -> int:
        try:
            ptr, index = self.system.alloc(rounded)
        except MemoryError as e:
            raise self._out_of_memory(requested, str(e)) from None
        self._direct[ptr] = (rounded, index)
        self._live[ptr] = (rounded, requested)
        return ptr

    def _give_back(self, ptr: int) -> None:
        size, _ = self._live.pop(ptr)
        self.used -= size
        if self.tags:
            self.tags.pop(ptr, None)
        if vlog_is_on(10):
            VLOG(10, f"Free pointer={ptr:#x} on {self.label}")
        direct = self._direct.pop(ptr, None)
        if direct is not None:
            self.system.free(ptr, *direct)
            return
        # Two chunks may happen to be adjacent, but each must be free alone to go back to the system.
        right = ptr + size
        right_size = self._free_size.get(right)
        if right_size is not None and right not in self._chunks:
            self._unlist(right)
            size += right_size
        left = self._free_end.get(ptr)
        if left is not None and ptr not in self._chunks:
            size += self._free_size[left]
            self._unlist(left)
            ptr = left
        self._list(ptr, size)

    def _list(self, ptr: int, size: int) -> None:
        insort(self._free, (size, ptr))
        self._free_size[ptr] = size
        self._free_end[ptr + size] = ptr

    def _unlist(self, ptr: int) -> None:
        size = self._free_size.pop(ptr)
        del self._free_end[ptr + size]
        del self._free[bisect_left(self._free, (size, ptr))]

    def _free_dead(self) -> None:
        while self._dead:
            self._give_back(self._dead.popleft())

    def _out_of_memory(self, requested: int, why: str) -> OutOfMemory:
        top = sorted(self._live.items(), key=lambda kv: -kv[1][0])[:5]
        holders = [f"{self.tags.get(p, hex(p))} {size_text(s)}" for p, (s, _) in top]
        reserved = sum(size for size, _ in [*self._chunks.values(), *self._direct.values()])
        largest = self._free[-1][0] if self._free else 0
        return OutOfMemory(
            f"Out of memory on {self.label}: cannot allocate {size_text(requested)}" + (f" ({why})." if why else "."),
            expected=f"at most {size_text(max(self.system.total() - reserved, largest))}",
            received=f"{size_text(requested)} while {size_text(self.used)} are in use and "
            f"{size_text(reserved - self.used)} of the pool are free"
            + (f"; the most is held by {', '.join(holders)}" if holders else ""),
            hint="use a smaller batch, drop scopes and tensors you no longer need, or raise "
            f"FLAGS_fraction_of_{'gpu' if self.system.use_gpu() else 'cpu'}_memory_to_use.",
        )

    def _free_left_behind(self) -> None:
        """Frees the blocks that destructors queued while the lock was held; not under the lock."""
        while self._dead and self._lock.acquire(False):
            try:
                self._start()
                self._free_dead()
                self._busy = False
            finally:
                self._lock.release()
