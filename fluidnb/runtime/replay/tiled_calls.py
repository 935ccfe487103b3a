"""Calls of numpy's functions over large arrays, made for a part of the elements at a time, which stays in the cache.

Each function of numpy goes through its arrays once, so that a chain of them goes through memory as often. Consecutive
calls that treat all rows alike are one call here: it makes all of them for some rows, then for the next ones. What
only they touch is memory for some rows.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from fluidnb.memory import address, root
from fluidnb.memory.arena import place
from fluidnb.memory.views import part, view_of
from fluidnb.op.masked_copy import masked_copy
from fluidnb.runtime.native.local_memory import local_accesses, separate
from fluidnb.runtime.native.regions import Access, Region, regions
from fluidnb.runtime.native.segment_code import LARGE, Calls, groups_of, large_calls, nothing, units_of
from fluidnb.runtime.native.statements import Statement, statement_of
from fluidnb.runtime.replay.buffer_placement import Life

Array = Any
#: Bytes of an array that are a part: the second cache holds those of four arrays.
_PART = 1 << 17
#: Functions that take twice as long with one number as with an array of it (numpy 2, AVX-512).
_SLOW_WITH_ONE = np.maximum, np.minimum
#: A part of the loops of a region: the index at which it begins, and its sizes, along the last loops.
_Tile = tuple[tuple[int, ...], tuple[int, ...]]
#: Address of a number, sizes and type character -> an array of that number.
_Numbers = dict[tuple[int, tuple[int, ...], str], Array]


def tiled(plain: Calls, lives: Mapping[int, Life]) -> Calls:
    """The calls of a segment with one, which goes through parts of the arrays, in place of consecutive ones.

    Args:
        lives: the buffers of the segment's own arrays, by the identities of these.

    Returns:
        The calls, at the same places: those that another makes are calls of nothing.
    """
    large = large_calls(plain.calls)
    if large is None:
        return plain
    found = (statement_of(plain.calls[k], k, in_c=False) for k in range(large[0], large[1] + 1))
    statements = [s for s in found if s is not None and (s.kind == "map" or _sums_short_rows(s))]
    nests: list[_Nest] = []
    for group in groups_of(statements, plain):
        own, buffers, crossing = separate(group, lives)
        for region in regions(own):
            tiles = _tiles(region)
            if len(region.statements) > 1 and len(tiles) > 1:
                nests.append(_Nest(region, tiles, local_accesses(region, buffers, crossing)))
    if not nests:
        return plain
    memory = _aligned(max(nest.size for nest in nests))  # which stays in the cache from nest to nest
    new, ops, spans = list(plain.calls), list(plain.ops), list[tuple[int, int]]()
    numbers: _Numbers = {}
    for nest in nests:
        first, last = nest.region.statements[0].call, nest.region.statements[-1].call
        new[first : last + 1] = [(_make, (nest.calls(plain, memory, numbers),)), *[(nothing, ())] * (last - first)]
        spans.append((first, last))
    return Calls(new, ops, units_of(plain.units, spans))


def _sums_short_rows(statement: Statement) -> bool:
    """Whether it is a sum, or another reduction, of rows that are shorter than a part."""
    return statement.kind == "rows" and statement.dims[-1] * statement.operands[0].array.itemsize <= _PART


def _make(calls: Sequence[tuple[Any, tuple[Any, ...]]]) -> None:
    for function, args in calls:
        function(*args)


def _tiles(region: Region) -> list[_Tile]:
    """The parts of the loops of a region; one where the arrays are small."""
    dims, arrays = region.dims, [operand.array for s in region.statements for operand in s.operands]
    size = max(array.itemsize for array in arrays)
    if prod(dims) * size < LARGE or not all(root(array).flags.c_contiguous for array in arrays):
        return [((), dims)]
    most, level, inner = _PART // size, len(dims), 1
    while level and inner * dims[level - 1] <= most:  # loops that are whole in each part
        level -= 1
        inner *= dims[level]
    if level == len(dims) and region.fixed:
        level, inner = level - 1, dims[-1]
    if not level:
        return [((), dims)]
    step, end = max(most // inner, 1), dims[level - 1]
    outer = product(*map(range, dims[: level - 1]))
    return [
        ((*index, start), (min(step, end - start), *dims[level:])) for index in outer for start in range(0, end, step)
    ]


class _Nest:
    """A region in parts.

    Args:
        local: the accesses that only its calls touch.

    Attributes:
        size: bytes of memory for these, where one has those of another that is used before it.
    """

    def __init__(self, region: Region, tiles: list[_Tile], local: set[Access]) -> None:
        self.region, self._tiles = region, tiles
        lives: dict[Access, tuple[int, int]] = {}
        for k, row in enumerate(region.accesses):
            for access in row:
                if access in local:
                    lives[access] = lives.get(access, (k, k))[0], k
        sizes = tiles[0][1]  # the largest part
        self._shapes = {
            access: tuple(n if s else 1 for n, s in zip(sizes, access.strides[-len(sizes) :], strict=True))
            for access in lives
        }
        nbytes = {access: prod(shape) * np.dtype(access.char).itemsize for access, shape in self._shapes.items()}
        keys = list(lives)
        offsets, self.size = place([(*lives[key], nbytes[key], k) for k, key in enumerate(keys)])
        self._offsets = {key: offsets[k] for k, key in enumerate(keys)}

    def calls(self, plain: Calls, memory: Array, numbers: _Numbers) -> list[tuple[Any, tuple[Any, ...]]]:
        """Its calls, part by part.

        Args:
            memory: bytes for local accesses.
            numbers: arrays of one number, of which more are added.
        """
        local = {
            access: view_of(memory, shape, access.char, self._offsets[access])
            for access, shape in self._shapes.items()
        }
        views: dict[tuple[Access, int, bool], Array] = {}
        return [call for tile in self._tiles for call in self._of_part(tile, plain, local, views, numbers)]

    def _of_part(
        self, tile: _Tile, plain: Calls, local: dict[Access, Array], known: dict[tuple[Access, int, bool], Array],
        numbers: _Numbers,
    ) -> Iterator[tuple[Any, tuple[Any, ...]]]:  # fmt: skip
        region, length = self.region, tile[1][0]
        for statement, row, each_row in zip(region.statements, region.accesses, region.each_row, strict=True):
            views, function = list[Array](), plain.calls[statement.call][0]
            slow = not each_row and type(function) is partial and function.func in _SLOW_WITH_ONE
            for i, (access, operand) in enumerate(zip(row, statement.operands, strict=True)):
                is_output = i == len(row) - 1
                ends_before_last = each_row or (statement.kind == "rows" and is_output)
                if access in local:  # parts of the same size have the same array
                    key = access, length, ends_before_last
                    if key not in known:
                        known[key] = local[access][:length, ..., 0] if ends_before_last else local[access][:length]
                    views.append(known[key])
                    continue
                is_whole = is_output or statement.kind == "rows"  # else numpy repeats what has a size of 1
                view = _view(operand.array, access, tile, ends_before_last, is_whole)
                is_number = slow and not view.ndim and not operand.array.flags.writeable
                views.append(_many(view, tile[1], numbers) if is_number else view)
            yield _call(statement, function, views)


def _many(number: Array, sizes: tuple[int, ...], known: _Numbers) -> Array:
    """An array of one number."""
    key = address(number), sizes, number.dtype.char
    if key not in known:
        known[key] = view_of(_aligned(prod(sizes) * number.itemsize), sizes, number.dtype)
        known[key][...] = number
    return known[key]


def _aligned(size: int) -> Array:
    """Bytes that begin at a multiple of 64: where vectors are in two lines of a cache, numpy takes twice as long."""
    memory = np.empty(size + 63, np.uint8)
    start = -address(memory) % 64
    return memory[start : start + size]


def _view(array: Array, access: Access, tile: _Tile, ends_before_last: bool, is_whole: bool) -> Array:
    """The elements of an array in a part of the loops."""
    (index, sizes), strides = tile, access.strides
    at = sum(i * s for i, s in zip(index, strides, strict=False))
    strides = strides[-len(sizes) :]
    if ends_before_last:
        sizes, strides = sizes[:-1], strides[:-1]
    if not any(strides):
        sizes, strides = (), ()
    elif not is_whole:
        sizes = tuple(n if s else 1 for n, s in zip(sizes, strides, strict=True))
    owner = root(array)
    return part(owner, sizes, array.dtype, access.address - address(owner) + at, strides)


def _call(statement: Statement, function: Any, views: list[Array]) -> tuple[Any, tuple[Any, ...]]:
    """The call of a statement for views of its operands."""
    *read, written = views
    if type(function) is partial:
        if type(function.func) is np.ufunc:
            return partial(function.func, out=written), tuple(read)
        function = function.func
    if statement.kind == "rows":
        return function, (*read, -1, None, written)
    if function is masked_copy or statement.masked:
        return masked_copy, (written, *read)
    if function in (operator.setitem, np.copyto):
        return operator.setitem, (written, ..., *read)
    return function, (*read, written)
