"""Alias analysis of arrays: those that occupy the same byte at the same time are views of one buffer."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(slots=True)
class BufferGroup:
    """Arrays of one buffer: variables, byte range, call range, and the operator whose workspace it is."""

    names: tuple[str, ...]
    low: int
    high: int
    first: int
    last: int
    home: Hashable = None

    def meets(self, other: BufferGroup) -> bool:
        """Whether both occupy a byte at the same time."""
        in_time = self.first <= other.last and other.first <= self.last
        return in_time and self.low < other.high and other.low < self.high

    def take(self, other: BufferGroup) -> None:
        """Extends the group to cover both."""
        early, late = (self, other) if self.first <= other.first else (other, self)
        self.names = tuple(dict.fromkeys((*early.names, *late.names)))
        self.home = None if self.names else self.home
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)


class BufferGroups:
    """Collects arrays and merges those of one buffer.

    Placing never gives two buffers the same byte at the same time, so arrays that share one are views of one buffer.
    Workspace that an operator uses piece by piece is one buffer too, if no other array is in between at that time.
    """

    def __init__(self) -> None:
        self._known: dict[str, BufferGroup] = {}
        self._touches: list[tuple[str, int, int, int]] = []
        self._views: list[tuple[list[str], BufferGroup, Hashable]] = []
        self._joined: list[tuple[str, str]] = []

    def touch(self, name: str, low: int, high: int, call: int) -> None:
        """Records that a call accesses the array of a variable."""
        self._touches.append((name, low, high, call))
        met = BufferGroup((name,), low, high, call, call)
        known = self._known.setdefault(name, met)
        if known is not met:
            known.take(met)

    def view(self, names: Iterable[str], low: int, high: int, call: int, home: Hashable, key: Hashable) -> None:
        """Records that a call accesses a view of one of these variables, or workspace."""
        self._views.append((list(names), BufferGroup((), low, high, call, call, home), key))

    def join(self, one: str, other: str) -> None:
        """Records that two variables share a buffer."""
        self._joined.append((one, other))

    def done(self) -> list[BufferGroup]:
        """The buffers in order of time; no two occupy the same byte at the same time."""
        self._merge_joined()
        workspace = self._assign_views()
        self._merge_joined()
        groups = [*{id(g): g for g in self._known.values()}.values(), *workspace]
        while len(merged := _swept(groups)) < len(groups):
            groups = merged
        return _merged_workspaces(merged)

    def _merge_joined(self) -> None:
        for one, other in self._joined:
            a, b = self._known.get(one), self._known.get(other)
            if a is None or b is None:
                full = a or b
                if full is not None:  # the other is touched by views alone
                    self._known[one] = self._known[other] = full
                    full.names = tuple(dict.fromkeys((*full.names, one, other)))
            elif a is not b:
                a.take(b)
                self._known.update({name: a for name, group in self._known.items() if group is b})

    def _assign_views(self) -> list[BufferGroup]:
        """Assigns views to their variables; the rest is workspace, one group for each array."""
        rows = [(id(self._known[name]), low, high, call) for name, low, high, call in self._touches]
        rows += [(0, g.low, g.high, g.first) for names, g, _ in self._views if not names]
        table = np.array(rows, np.int64).reshape(-1, 4).T
        workspace: dict[Hashable, BufferGroup] = {}
        for names, group, key in self._views:
            owner = self._owner(names, group, table)
            if owner is not None:
                owner.take(group)
            else:
                known = workspace.setdefault((group.home, key), group)
                known.take(group)
        return list(workspace.values())

    def _owner(self, names: list[str], view: BufferGroup, table: np.ndarray[Any, Any]) -> BufferGroup | None:
        """The variable of a view: no other array occupies its bytes between its calls and the view."""
        if not names:
            return None
        candidates = [g for g in map(self._known.get, names) if g is not None]
        for group in sorted(candidates, key=lambda g: not g.first <= view.first <= g.last):
            start, end = (group.last, view.first) if view.first > group.last else (view.first, group.first)
            owner, low, high, call = table
            between = (call > start) & (call < end) & (low < group.high) & (group.low < high) & (owner != id(group))
            if not between.any():
                return group
        if candidates:
            return None
        group = self._known[names[0]] = replace(view, names=(names[0],), home=None)
        return group


def _swept(groups: list[BufferGroup]) -> list[BufferGroup]:
    """Merges groups that occupy the same byte at the same time, in one sweep over time.

    Live groups are disjoint, so a list sorted by first byte suffices.
    """
    done: dict[int, BufferGroup] = {}
    lows: list[int] = []
    alive: list[BufferGroup] = []
    ends: list[tuple[int, int, BufferGroup]] = []
    for i, group in enumerate(sorted(groups, key=lambda g: (g.first, g.low))):
        while ends and ends[0][0] < group.first:
            old = heapq.heappop(ends)[2]  # an extended group is in the heap again with its new end
            at = bisect_left(lows, old.low)
            if old.last < group.first and at < len(alive) and alive[at] is old:
                del lows[at], alive[at]
        first = max(bisect_right(lows, group.low) - 1, 0)
        while first < len(alive) and alive[first].high <= group.low:
            first += 1
        last = bisect_left(lows, group.high)
        full = group
        if first < last:
            full = alive[first]
            for other in (*alive[first + 1 : last], group):
                full.take(other)
                done.pop(id(other), None)
        lows[first:last], alive[first:last] = [full.low], [full]
        done[id(full)] = full
        heapq.heappush(ends, (full.last, i, full))
    return sorted(done.values(), key=lambda g: (g.first, g.low))


def _merged_workspaces(groups: list[BufferGroup]) -> list[BufferGroup]:
    """Merges pieces of the workspace of one operator where that takes no byte of another buffer."""
    homes: dict[Hashable, list[BufferGroup]] = defaultdict(list)
    for group in groups:
        if group.home is not None:
            homes[group.home].append(group)
    merged: set[int] = set()
    for pieces in homes.values():
        if len(pieces) < 2:
            continue
        first, last = min(p.first for p in pieces), max(p.last for p in pieces)
        around = [g for g in groups if g.first <= last and first <= g.last]
        kept: list[BufferGroup] = []
        for piece in pieces:
            for full in kept:
                if piece.low < full.high and full.low < piece.high and _fits(full, piece, around, merged):
                    full.take(piece)
                    merged.add(id(piece))
                    break
            else:
                kept.append(piece)
    return [g for g in groups if id(g) not in merged]


def _fits(full: BufferGroup, piece: BufferGroup, around: list[BufferGroup], merged: set[int]) -> bool:
    both = replace(full)
    both.take(piece)
    return not any(g.meets(both) for g in around if g is not full and g is not piece and id(g) not in merged)
