"""The pool allocator against a naive model, and what it says when memory runs out."""

from __future__ import annotations

import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from fluidnb.errors import OpValueError
from fluidnb.memory import BuddyAllocator, OutOfMemory

MIN, MAX, LIMIT = 256, 4096, 20000


class FakeSystem:
    """Addresses without memory; refuses to hand out more than `limit` bytes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit, self.next, self.live = limit, 1 << 20, {}

    def alloc(self, size: int) -> tuple[int, int]:
        """The next addresses, chunks touching so that wrong merging across them shows."""
        if sum(self.live.values()) + size > self.limit:
            raise MemoryError
        ptr, self.next = self.next, self.next + size
        self.live[ptr] = size
        return ptr, 7

    def free(self, ptr: int, size: int, index: int) -> None:
        """Take them back, exactly as given."""
        assert self.live.pop(ptr) == size and index == 7

    def use_gpu(self) -> bool:
        """No."""
        return False

    def total(self) -> int:
        """The limit."""
        return self.limit


class PoolMachine(RuleBasedStateMachine):
    """Random allocations and frees; the model is a dict of what is live."""

    blocks = Bundle("blocks")

    def __init__(self) -> None:
        super().__init__()
        self.system = FakeSystem()
        self.pool = BuddyAllocator(self.system, MIN, MAX)
        self.live: dict[int, int] = {}
        self.peak = 0

    def free_spans(self) -> list[tuple[int, int]]:
        """Free spans as (size, address), the best fit for a size first."""
        return sorted((b.size, b.ptr) for _, _, spans in self.pool.spans() for b in spans if b.asked is None)

    @rule(target=blocks, size=st.one_of(st.integers(0, 2 * MIN), st.integers(0, 2 * MAX)))
    def alloc(self, size: int) -> int | None:
        """Best fit: the smallest free span that is large enough, the lowest address among equals."""
        rounded = max(-(-size // MIN), 1) * MIN
        fits = [ptr for n, ptr in self.free_spans() if n >= rounded and rounded <= MAX]
        try:
            ptr = self.pool.alloc(size)
        except OutOfMemory:
            assert not fits and sum(self.system.live.values()) + rounded > LIMIT
            return None
        assert not fits or ptr == fits[0]
        assert ptr % MIN == 0
        self.live[ptr] = rounded
        self.peak = max(self.peak, sum(self.live.values()))
        return ptr

    @rule(ptr=consumes(blocks), later=st.booleans())
    def free(self, ptr: int | None, later: bool) -> None:
        """Free a live block; by a second time it is refused."""
        if ptr is None:
            return
        (self.pool.free_later if later else self.pool.free)(ptr)
        del self.live[ptr]
        with pytest.raises(OpValueError, match="Cannot free pointer"):
            self.pool.free(ptr)

    @rule()
    def release(self) -> None:
        """Idle chunks go back to the system, others stay."""
        before = sum(self.system.live.values())
        given = self.pool.release_idle()
        assert before - given == sum(self.system.live.values())

    @invariant()
    def spans_tile_the_chunks_and_free_neighbours_are_merged(self) -> None:
        """The map is exact: no gaps, no overlaps, no two free spans side by side in a chunk."""
        found = {}
        for chunk, size, spans in self.pool.spans():
            end = chunk
            for i, span in enumerate(spans):
                assert span.ptr == end
                end += span.size
                if span.asked is not None:
                    found[span.ptr] = span.size
                elif i:
                    assert spans[i - 1].asked is not None
            assert end == chunk + size
            assert self.system.live[chunk] == size
        assert found == self.live

    @invariant()
    def counts_agree(self) -> None:
        """Used, peak and reserved are sums over the model."""
        stats = self.pool.stats()
        assert self.pool.used == stats.used == sum(self.live.values())
        assert stats.peak == self.peak
        assert stats.reserved == sum(self.system.live.values())
        assert stats.reserved - stats.used == stats.free

    def teardown(self) -> None:
        """Everything freed leaves nothing behind."""
        for ptr in list(self.live):
            self.pool.free(ptr)
        self.pool.release_idle()
        assert self.system.live == {} and self.pool.used == 0


PoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPool = PoolMachine.TestCase


def test_two_neighbours_freed_are_one_block_again() -> None:
    pool = BuddyAllocator(FakeSystem(), MIN, MAX)
    a, b, c = pool.alloc(300), pool.alloc(10), pool.alloc(1)
    assert (b - a, c - b) == (512, 256)
    pool.free(a)
    pool.free(b)
    ((_, _, spans),) = pool.spans()
    assert [(s.ptr - a, s.size, s.asked) for s in spans] == [(0, 768, None), (768, 256, 1), (1024, 3072, None)]


def test_fragmentation_counts_free_memory_outside_the_largest_block() -> None:
    pool = BuddyAllocator(FakeSystem(), MIN, 1024)
    blocks = [pool.alloc(256) for _ in range(4)]
    pool.free(blocks[0])
    pool.free(blocks[2])
    assert pool.stats().fragmentation == 0.5
    pool.free(blocks[1])
    assert pool.stats().fragmentation == 0.0


def test_out_of_memory_names_sizes_the_flag_and_the_largest_holders() -> None:
    pool = BuddyAllocator(FakeSystem(5000), MIN, MAX, "ToyPlace(3)")
    pool.tags[pool.alloc(3000)] = "conv1.w_0"
    pool.alloc(100)
    with pytest.raises(OutOfMemory) as e:
        pool.alloc(6000)
    text = str(e.value)
    for part in ("ToyPlace(3)", "5.9 KB", "3.2 KB are in use", "conv1.w_0 3.0 KB", "FLAGS_fraction_of_cpu_memory"):
        assert part in text
    assert isinstance(e.value, MemoryError)
    assert pool.used == 3072 + 256


def test_a_request_that_fits_no_chunk_is_still_served_alone() -> None:
    pool = BuddyAllocator(FakeSystem(1000), MIN, MAX)
    ptr = pool.alloc(700)
    assert pool.stats().reserved == 768
    pool.free(ptr)
    assert pool.stats().reserved == 0


def test_a_negative_size_is_refused() -> None:
    pool = BuddyAllocator(FakeSystem(), MIN, MAX)
    with pytest.raises(OpValueError, match="Cannot allocate -1 bytes on CPUPlace"):
        pool.alloc(-1)


def test_peak_starts_again_after_reset() -> None:
    pool = BuddyAllocator(FakeSystem(), MIN, MAX)
    pool.free(pool.alloc(2000))
    pool.reset_peak()
    assert pool.peak == 0
    pool.alloc(1)
    assert pool.peak == MIN


def test_a_destructor_that_runs_inside_alloc_neither_hangs_nor_is_forgotten() -> None:
    class Collecting(FakeSystem):
        """A system allocator during which the garbage collector frees a block."""

        def alloc(self, size: int) -> tuple[int, int]:
            """Free the first block from within."""
            if self.live:
                pool.free_later(first)
            return super().alloc(size)

    pool = BuddyAllocator(Collecting(), MIN, MAX)
    first = pool.alloc(MAX)
    worker = threading.Thread(target=pool.alloc, args=(1,), daemon=True)
    worker.start()
    worker.join(60)
    assert not worker.is_alive()
    assert pool.used == MIN
