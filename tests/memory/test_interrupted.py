"""An exception at any line of the pool's bookkeeping (Ctrl-C comes when it likes) leaves the pool whole."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from fluidnb.memory.buddy import BuddyAllocator

UNDER_THE_LOCK = {"_take", "_take_direct", "_give_back", "_list", "_unlist", "_free_dead", "_start"}
MIN, MAX = 256, 4096


class Chunks:
    """A system allocator of addresses alone."""

    def __init__(self) -> None:
        self.next = 1 << 20
        self.live: dict[int, int] = {}

    def alloc(self, size: int) -> tuple[int, int]:
        """Addresses that never lie side by side."""
        ptr, self.next = self.next, self.next + size + MAX
        self.live[ptr] = size
        return ptr, 0

    def free(self, ptr: int, size: int, index: int) -> None:
        """Give one back."""
        assert self.live.pop(ptr) == size

    def use_gpu(self) -> bool:
        """No."""
        return False

    def total(self) -> int:
        """Plenty."""
        return 1 << 30


class Interruption:
    """Raises KeyboardInterrupt at the n-th line that a pool runs under its lock; other pools are left alone."""

    def __init__(self, pool: BuddyAllocator, n: int) -> None:
        self.pool, self.left = pool, n

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_name in UNDER_THE_LOCK and frame.f_locals.get("self") is self.pool:
            if event == "line":
                self.left -= 1
                if self.left == 0:
                    raise KeyboardInterrupt
            return self
        return None


def busy(pool: BuddyAllocator) -> None:
    """Blocks of all kinds come and go."""
    a, b, c = pool.alloc(100), pool.alloc(600), pool.alloc(300)
    pool.free(b)
    d = pool.alloc(200)
    big = pool.alloc(2 * MAX)
    pool.free(a)
    pool.free(big)
    pool.free_later(c)
    pool.free(d)


def check(pool: BuddyAllocator) -> None:
    """The books agree with each other, and everything can be freed."""
    stats = pool.stats()
    assert stats.used == sum(span.size for span in stats.live) and stats.reserved - stats.used == stats.free
    for chunk, size, spans in pool.spans():
        at = chunk
        for span in spans:
            assert span.ptr == at
            at += span.size
        assert at == chunk + size
    for span in stats.live:
        pool.free(span.ptr)
    assert pool.used == 0
    pool.free(pool.alloc(MAX))
    pool.release_idle()
    assert pool.stats().reserved == 0


def test_an_interrupt_at_any_line_leaves_the_pool_whole() -> None:
    interrupts = 0
    while True:
        pool = BuddyAllocator(Chunks(), MIN, MAX)
        before = sys.gettrace()
        sys.settrace(Interruption(pool, interrupts + 1))
        try:
            busy(pool)
        except KeyboardInterrupt:
            sys.settrace(before)
            interrupts += 1
            check(pool)
        else:
            break
        finally:
            sys.settrace(before)
    assert interrupts > 100


def test_the_check_would_notice() -> None:
    pool = BuddyAllocator(Chunks(), MIN, MAX)
    pool.alloc(1)
    pool._free_size.clear()
    with pytest.raises(AssertionError):
        check(pool)
