"""Regions: consecutive statements that share their loops.

They may where each row of what they write depends on that row alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from math import prod
from typing import Any, NamedTuple

from fluidnb.runtime.native.statements import Operand, Statement, bounds

#: Fewer elements than this along the inner loop are too few for numpy's loops, which cost a call each.
_FEW = 64
#: An inner loop that is cut for the sake of outer ones has as many elements at least.
_LONG = 256
#: Kinds of statements that go through whole rows.
REDUCTIONS = ("rows", "columns")


class Access(NamedTuple):
    """The place of an operand's element, as a function of the loops: two equal ones are the same memory."""

    address: int
    char: str
    strides: tuple[int, ...]


class Region:
    """Statements over one nest of loops.

    Attributes:
        dims: sizes of the loops, the innermost last; empty for one element.
        fixed: size of the inner loop that must stay: the length of the rows that are summed; 0 if none are.
        statements: in order, with their accesses along ``dims``; inner strides of statements of each row alone are 0.
        each_row: for each statement, whether it computes one element for each row.
        ranges: for each access the addresses of its array's first byte and of the one behind its last.
        written: the accesses that are written.
    """

    def __init__(self, first: Statement) -> None:
        self.dims: tuple[int, ...] = first.dims
        self.fixed = first.dims[-1] if first.kind in REDUCTIONS else 0
        self.statements: list[Statement] = []
        self.accesses: list[list[Access]] = []
        self.each_row: list[bool] = []
        self.ranges: dict[Access, tuple[int, int]] = {}
        self.written: set[Access] = set()
        self._closed: set[Access] = set()  # sums over rows, complete when the region ends
        self._append(first, [_access(o, o.strides) for o in first.operands], False)

    def take(self, statement: Statement) -> bool:
        """Add a statement; False where it cannot share the loops."""
        total, own = prod(self.dims), prod(statement.dims)
        each_row = own != total
        if each_row:
            if not self.fixed or statement.kind != "map" or own * self.dims[-1] != total:
                return False
            dims = _refined(self.dims, (*statement.dims, self.dims[-1]))
        else:
            dims = _refined(self.dims, statement.dims)
        fixed = statement.dims[-1] if statement.kind in REDUCTIONS else 0
        if dims is None or any(n and dims[-1] != n for n in (fixed, self.fixed)):
            return False
        if each_row and dims[-1] != self.dims[-1]:
            return False
        if dims and dims[-1] < _FEW:  # a finer nest must not call numpy's loops for a few elements
            for s in (*self.statements, statement):
                if s.loop is not None and s.kind == "map" and (s.dims[-1:] or (1,))[0] > dims[-1]:
                    return False
        target = dims[:-1] if each_row else dims
        strides = [_split(statement.dims, o.strides, target) for o in statement.operands]
        if each_row:
            strides = [(*s, 0) for s in strides]
        if dims != self.dims and any(self.each_row):
            return False
        seen = self if dims == self.dims else self._finer(dims)
        ranges, written, closed, accesses = seen.ranges, seen.written, seen._closed, seen.accesses
        new = [_access(o, s) for o, s in zip(statement.operands, strides, strict=True)]
        for i, (access, operand) in enumerate(zip(new, statement.operands, strict=True)):
            low, high = bounds(operand.array)
            writes = i == len(new) - 1
            for other, (start, end) in ranges.items():
                if low < end and start < high and (writes or other in written):
                    if access != other or other in closed or (writes and statement.kind == "columns"):
                        return False
        self.dims, self.ranges, self.written, self._closed, self.accesses = dims, ranges, written, closed, accesses
        self.fixed = self.fixed or fixed
        self._append(statement, new, each_row)
        return True

    def _finer(self, dims: tuple[int, ...]) -> Region:
        """The same over loops of which several make one of these."""
        other = copy(self)
        moved = {a: a._replace(strides=_split(self.dims, a.strides, dims)) for a in self.ranges}
        other.dims, other.ranges = dims, {moved[a]: r for a, r in self.ranges.items()}
        other.written, other._closed = {moved[a] for a in self.written}, {moved[a] for a in self._closed}
        other.accesses = [[moved[a] for a in row] for row in self.accesses]
        return other

    def along(self, outer: tuple[int, ...]) -> Region | None:
        """The same with these outer loops; None where its loops cannot be cut so, or become too short."""
        total = prod(self.dims)
        if not outer or not self.dims or not total or total % prod(outer):
            return None
        dims = _refined(self.dims, (*outer, total // prod(outer)))
        if dims is None or dims[: len(outer)] != outer or len(dims) == len(outer):
            return None
        inner = self.dims[-1]
        if dims[-1] != inner and (self.fixed or any(self.each_row) or dims[-1] < _LONG):
            return None
        return self._finer(dims)

    def meets(self, statement: Statement) -> bool:
        """Whether it has bytes in common with a statement that one of them writes."""
        for i, operand in enumerate(statement.operands):
            low, high = bounds(operand.array)
            writes = i == len(statement.operands) - 1
            for access, (start, end) in self.ranges.items():
                if low < end and start < high and (writes or access in self.written):
                    return True
        return False

    def _append(self, statement: Statement, accesses: list[Access], each_row: bool) -> None:
        self.statements.append(statement)
        self.accesses.append(accesses)
        self.each_row.append(each_row)
        for access, operand in zip(accesses, statement.operands, strict=True):
            self.ranges[access] = bounds(operand.array)
        self.written.add(accesses[-1])
        if statement.kind == "columns":
            self._closed.add(accesses[-1])


def regions(statements: Sequence[Statement], reach: int = 0) -> list[Region]:
    """Consecutive statements as regions, each as long as it can be.

    Args:
        reach: how many regions a statement may go back past, where they have nothing to do with it.
    """
    found: list[Region] = []
    for statement in statements:
        for region in reversed(found[-1 - reach :]):
            if region.take(statement):
                break
            if region.meets(statement):
                found.append(Region(statement))
                break
        else:
            found.append(Region(statement))
    return found


def together(nests: Sequence[Region]) -> list[tuple[list[Region], int]]:
    """Consecutive regions whose outer loops can be one, and how many loops that are; 0 for a region alone.

    So what one writes is in the cache when the next reads it.
    """
    found: list[tuple[list[Region], int]] = []
    for nest in nests:
        both = _together(*found[-1], nest) if found else None
        if both is None:
            found.append(([nest], 0))
        else:
            found[-1] = both
    return found


def _together(parts: list[Region], levels: int, nest: Region) -> tuple[list[Region], int] | None:
    """Regions with some outer loops in common and one more; None where it has none with them."""
    alike: list[tuple[list[Region], Region | None]] = [(parts, nest)]
    first = parts[0]
    for n in (levels,) if levels else range(min(len(first.dims) - 1, 2), 0, -1):
        alike.append((parts, nest.along(first.dims[:n])))
    if not levels:
        for n in range(min(len(nest.dims) - 1, 2), 0, -1):
            other = first.along(nest.dims[:n])
            alike.append(([] if other is None else [other], nest))
    for those, one in alike:
        if those and one is not None:
            common = min([levels or 2, *(_common(part, one) for part in those)])
            if common:
                return [*those, one], common
    return None


def _common(a: Region, b: Region) -> int:
    """The number of outer loops that two regions, the second after the first, may have in common."""
    most = 0
    for same in (x == y for x, y in zip(a.dims[:-1], b.dims[:-1], strict=False)):
        if not same:
            break
        most += 1
    if any(s.kind == "columns" for part in (a, b) for s in part.statements):
        return 0
    for levels in range(min(most, 2), 0, -1):
        if all(_apart(a.dims[:levels], *pair) for pair in _conflicts(a, b)):
            return levels
    return 0


#: An access with the bytes of its array, from the first to behind the last.
_Placed = tuple[Access, int, int]


def _conflicts(a: Region, b: Region) -> Iterator[tuple[_Placed, _Placed]]:
    """The accesses of two regions to bytes in common of which one writes."""
    for x, (low, high) in a.ranges.items():
        for y, (start, end) in b.ranges.items():
            if low < end and start < high and (x in a.written or y in b.written):
                yield (x, low, high), (y, start, end)


def _apart(sizes: tuple[int, ...], x: _Placed, y: _Placed) -> bool:
    """Whether two accesses have no bytes in common in different iterations of outer loops."""
    levels, strides = len(sizes), x[0].strides[: len(sizes)]
    if strides != y[0].strides[:levels] or min(strides) <= 0:
        return False
    outer = sum(s * (n - 1) for s, n in zip(strides, sizes, strict=True))
    reach = max(x[2], y[2]) - min(x[1], y[1]) - outer  # from the first to behind the last byte of one iteration
    ranges = (*strides, reach)
    return all(ranges[k + 1] * (sizes[k + 1] if k + 1 < levels else 1) <= ranges[k] for k in range(levels))


def _access(operand: Operand, strides: tuple[int, ...]) -> Access:
    array: Any = operand.array
    return Access(array.__array_interface__["data"][0], array.dtype.char, strides)


def _refined(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The coarsest dimensions whose products are the sizes of both, for equal products; None where there are none.

    Example:
        >>> _refined((12,), (3, 4)), _refined((2, 6), (3, 4))
        ((3, 4), None)
    """
    if a == b:
        return a
    cuts: set[int] = set()
    for dims in (a, b):
        size = 1
        for n in reversed(dims):
            size *= n
            cuts.add(size)
    sizes, before = [], 1
    for cut in sorted(cuts):
        if cut % before:
            return None
        sizes.append(cut // before)
        before = cut
    return tuple(reversed(sizes))


def _split(dims: Sequence[int], strides: Sequence[int], finer: Sequence[int]) -> tuple[int, ...]:
    """Strides along finer dimensions.

    Example:
        >>> _split((12,), (4,), (3, 4))
        (16, 4)
    """
    result: list[int] = []
    left = list(zip(dims, strides, strict=True))
    for n in reversed(finer):
        size, stride = left.pop()
        result.append(stride)
        if size != n:
            left.append((size // n, stride * n))
    return tuple(reversed(result))
