"""Sequences in packed order.

Nothing is padded. Step t holds one row of each sequence that is longer than t; its rows follow those of step t - 1 in
one packed array, and row i of a step continues from row i of the step before.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.sequences import require_lod


def parts(x: Array, width: int) -> Array:
    """The columns of each part apart, [parts, rows, width]; a view where the memory of ``x`` allows it."""
    return x.reshape(len(x), -1, width).transpose(1, 0, 2)


class Batches:
    """The order of the rows of sequences, step by step; from last to first with ``reverse``."""

    __slots__ = ("_steps", "before", "first", "order", "places", "reverse", "rows", "starts")

    def __init__(self, offsets: Array, reverse: bool = False) -> None:
        self.reverse = reverse
        lengths = np.diff(offsets)
        self.order = np.argsort(-lengths, kind="stable")
        sizes = np.bincount(lengths)[::-1].cumsum()[::-1][1:]  # sequences longer than t
        self.starts = [0, *np.cumsum(sizes).tolist()]
        self.first = int(sizes[0]) if len(sizes) else 0
        step = np.repeat(np.arange(len(sizes)), sizes)
        sequence = self.order[np.arange(self.starts[-1]) - np.array(self.starts)[step]]
        self.rows = offsets[sequence + 1] - 1 - step if reverse else offsets[sequence] + step
        self.places = np.empty_like(self.rows)
        self.places[self.rows] = np.arange(len(self.rows))
        steps = [slice(*ends) for ends in pairwise(self.starts)]
        behind = [slice(old.start, old.start + now.stop - now.start) for old, now in pairwise(steps)]
        self._steps = list(zip(steps, [None, *behind], strict=False))
        self.before = np.arange(self.first, len(self.rows)) - np.repeat(sizes[:-1], sizes[1:])

    def __iter__(self) -> Iterator[tuple[slice, slice | None]]:
        """For each step its packed rows, and those of the step before that it continues from (None for the first)."""
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    def backwards(self) -> Iterator[tuple[slice, slice | None, int]]:
        """The steps from the last to the first, each with the number of its rows that continue in the next step."""
        going_on = 0
        for now, previous in reversed(self._steps):
            yield now, previous, going_on
            going_on = now.stop - now.start

    def pack(self, x: Array, out: Array) -> None:
        """Write rows in packed order."""
        if len(self.rows):
            x.take(self.rows, 0, out, "clip")

    def unpack(self, packed: Array, out: Array) -> None:
        """Write packed rows in the order of the input."""
        if len(self.places):
            packed.take(self.places, 0, out, "clip")

    def pack_parts(self, x: Array, out: Array) -> None:
        """Write packed rows of several parts [n, parts, width] with each part apart."""
        parts, n, width = out.shape
        if n:
            x.reshape(-1, width).take(np.arange(n) * parts + np.arange(parts)[:, None], 0, out, "clip")

    def unpack_parts(self, packed: Array, out: Array) -> None:
        """Write packed rows of several parts [parts, n, width] in the order of the input."""
        if len(self.places):
            parts, n, width = packed.shape
            packed.reshape(-1, width).take(self.places[:, None] + np.arange(parts) * n, 0, out, "clip")

    def previous(self, x: Array, initial: Array, out: Array) -> None:
        """Write for each row the state that it continues from, all in the order of the input."""
        if self.reverse:
            out[:-1] = x[1:]
        else:
            out[1:] = x[:-1]
        out[self.rows[: self.first]] = initial

    def pack_initial(self, x: Array | None, out: Array) -> None:
        """Write an initial state, or zeros, for the rows of step 0."""
        if x is None:
            out.fill(0)
        elif len(out):
            x.take(self.order[: self.first], 0, out, "clip")

    def pack_previous(self, packed: Array, initial: Array, out: Array) -> None:
        """Write for each packed row the state that it continues from."""
        if len(self.rows):
            out[: self.first] = initial
            if len(self.before):
                packed.take(self.before, 0, out[self.first :], "clip")

    def unpack_initial(self, packed: Array, out: Array) -> None:
        """Write the gradient of an initial state; sequences without rows get zeros."""
        out.fill(0)
        out[self.order[: self.first]] = packed


class Blocks:
    """Rows of several parts in packed order, a block [parts, rows, width] of contiguous memory for each step."""

    __slots__ = ("_places", "_rows", "_shapes")

    def __init__(self, batches: Batches, parts: int) -> None:
        n, starts = len(batches.rows), np.array(batches.starts)
        sizes, each = np.diff(starts), np.arange(parts)
        self._shapes = [(parts, size) for size in sizes.tolist()]
        first = np.arange(n) + np.repeat(starts[:-1] * (parts - 1), sizes)  # of each packed row, that of its part 0
        self._places = first[:, None] + np.repeat(sizes, sizes)[:, None] * each
        self._rows = np.empty(n * parts, "int64")
        self._rows[self._places] = batches.rows[:, None] * parts + each

    def pack(self, x: Array, out: Array) -> None:
        """Write rows [n, parts · width], in the order of the input, in blocks."""
        if len(self._rows):
            x.reshape(out.shape).take(self._rows, 0, out, "clip")

    def rows(self, blocks: Array, out: Array) -> None:
        """Write blocks row by row, [n, parts, width], in packed order."""
        if len(self._rows):
            blocks.take(self._places, 0, out, "clip")

    def steps(self, blocks: Array) -> Iterator[Array]:
        """The block of each step, a view [parts, rows, width]."""
        start = 0
        for parts, rows in self._shapes:
            yield blocks[start : start + parts * rows].reshape(parts, rows, -1)
            start += parts * rows


def steps_of(b: Binder, parts: int) -> tuple[Batches, Blocks]:
    """The steps of an operator's input, and of its rows of several parts."""
    require_lod(b, "Input")
    return _steps_of(b.lod("Input")[-1], bool(b.attr("is_reverse", False)), parts)


@lru_cache(maxsize=8)
def _steps_of(level: tuple[int, ...], reverse: bool, parts: int) -> tuple[Batches, Blocks]:
    """The same by the sequences: an operator and its gradient share them."""
    batches = Batches(np.array(level, np.int64), reverse)
    return batches, Blocks(batches, parts)
