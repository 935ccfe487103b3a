"""Memory placement by lifetime: buffers that are never live at once may share bytes."""

import heapq
from bisect import insort
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate

#: (first call, last call, bytes, key) of one buffer.
Life = tuple[int, int, int, int]
ALIGN = 64
#: Above this number of buffers the placement is linear instead of first fit.
_MANY = 600


def place(lives: Sequence[Life]) -> tuple[dict[int, int], int]:
    """Offsets by key for buffers in one arena, multiples of 64, and the arena's size in bytes."""
    return _linear(lives) if len(lives) > _MANY else _first_fit(lives)


def fullest(lives: Sequence[Life], calls: int) -> int:
    """The first call at which buffers take the most bytes."""
    change = [0] * (calls + 2)
    for first, last, size, _ in lives:
        change[first] += size
        change[last + 1] -= size
    live = list(accumulate(change[:calls]))
    return live.index(max(live))


def _rounded(size: int) -> int:
    return (size + ALIGN - 1) // ALIGN * ALIGN


def _first_fit(lives: Sequence[Life]) -> tuple[dict[int, int], int]:
    """Largest first, each at the lowest offset that is free throughout its life."""
    offsets: dict[int, int] = {}
    placed: list[tuple[int, int, int, int]] = []  # by offset
    top = 0
    for first, last, size, key in sorted(lives, key=lambda life: -life[2]):
        size = _rounded(size)
        at = 0
        for low, high, born, dead in placed:
            if born <= last and first <= dead:
                if low - at >= size:
                    break
                if high > at:
                    at = high
        insort(placed, (at, at + size, first, last))
        offsets[key] = at
        top = max(top, at + size)
    return offsets, top


def _linear(lives: Sequence[Life]) -> tuple[dict[int, int], int]:
    """In order of time, with a free list for each size."""
    free: dict[int, list[int]] = defaultdict(list)
    active: list[tuple[int, int, int]] = []
    offsets: dict[int, int] = {}
    top = 0
    for first, last, size, key in sorted(lives):
        size = _rounded(size)
        while active and active[0][0] < first:
            _, at, n = heapq.heappop(active)
            free[n].append(at)
        if free[size]:
            at = free[size].pop()
        else:
            at, top = top, top + size
        offsets[key] = at
        heapq.heappush(active, (last, at, size))
    return offsets, top
