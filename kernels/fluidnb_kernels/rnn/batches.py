"""Sequences as batches of time steps: the longest first, so that those still running are the first rows of a step.

Nothing is padded. Step t holds one row of each sequence that is longer than t; its rows follow those of step t - 1 in
one packed array, and row i of a step continues from row i of the step before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

Array = Any


def parts(x: Array, width: int) -> Array:
    """The columns of each part apart.

    Args:
        x: [rows, parts · width].

    Returns:
        [parts, rows, width], a view where the memory of ``x`` allows it.

    Example:
        >>> parts(np.arange(8).reshape(2, 4), 2).tolist()
        [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    """
    return x.reshape(len(x), -1, width).transpose(1, 0, 2)


class Batches:
    """How sequences become steps.

    Args:
        offsets: of the sequences.
        reverse: whether time runs from the last row of a sequence to the first.

    Attributes:
        order: int64: the sequences, the longest first.
        rows: int64: for each packed row, the row of the input.
        places: int64: for each row of the input, its packed row.
        before: int64: for each packed row from step 1 on, the packed row that it continues from.
        reverse: whether time runs from the last row of a sequence to the first.
        starts: where each step starts in the packed array, and where the last one ends.

    Example:
        >>> steps = Batches(np.array([0, 2, 5, 6]))
        >>> steps.order, steps.rows, steps.starts
        (array([1, 0, 2]), array([2, 0, 5, 3, 1, 4]), [0, 3, 5, 6])
    """

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
        """The steps from the last to the first, each with how many of its rows continue in the next step it."""
        going_on = 0
        for now, previous in reversed(self._steps):
            yield now, previous, going_on
            going_on = now.stop - now.start

    def pack(self, x: Array, out: Array) -> None:
        """Write rows in packed order.

        Args:
            x: [n, width].
            out: [n, width], written.
        """
        if len(self.rows):
            x.take(self.rows, 0, out, "clip")

    def unpack(self, packed: Array, out: Array) -> None:
        """Write packed rows in the order of the input.

        Args:
            packed: [n, width].
            out: [n, width], written.
        """
        if len(self.places):
            packed.take(self.places, 0, out, "clip")

    def pack_parts(self, x: Array, out: Array) -> None:
        """Write packed rows of several parts with each part apart.

        Args:
            x: [n, parts, width], in packed order.
            out: [parts, n, width], written.
        """
        parts, n, width = out.shape
        if n:
            x.reshape(-1, width).take(np.arange(n) * parts + np.arange(parts)[:, None], 0, out, "clip")

    def unpack_parts(self, packed: Array, out: Array) -> None:
        """Write packed rows of several parts in the order of the input.

        Args:
            packed: [parts, n, width].
            out: [n, parts, width], written.
        """
        if len(self.places):
            parts, n, width = packed.shape
            packed.reshape(-1, width).take(self.places[:, None] + np.arange(parts) * n, 0, out, "clip")

    def previous(self, x: Array, initial: Array, out: Array) -> None:
        """Write for each row the state that it continues from, all in the order of the input.

        Args:
            x: [n, width]: the state after each row.
            initial: [sequences with rows, width]: the state before step 0, packed.
            out: [n, width], written.
        """
        if self.reverse:
            out[:-1] = x[1:]
        else:
            out[1:] = x[:-1]
        out[self.rows[: self.first]] = initial

    def pack_initial(self, x: Array | None, out: Array) -> None:
        """Write an initial state for the rows of step 0.

        Args:
            x: [sequences, width], or None for zeros.
            out: [sequences with rows, width], written.
        """
        if x is None:
            out.fill(0)
        elif len(out):
            x.take(self.order[: self.first], 0, out, "clip")

    def pack_previous(self, packed: Array, initial: Array, out: Array) -> None:
        """Write for each packed row the state that it continues from.

        Args:
            packed: [n, width]: the state after each row.
            initial: [sequences with rows, width]: the state before step 0.
            out: [n, width], written.
        """
        if len(self.rows):
            out[: self.first] = initial
            if len(self.before):
                packed.take(self.before, 0, out[self.first :], "clip")

    def unpack_initial(self, packed: Array, out: Array) -> None:
        """Write the gradient of an initial state; sequences without rows get zeros.

        Args:
            packed: [sequences with rows, width].
            out: [sequences, width], written.
        """
        out.fill(0)
        out[self.order[: self.first]] = packed


class Blocks:
    """Rows of several parts in packed order, a block [parts, rows, width] for each step.

    A step works on one piece of memory, and so does each of its parts.

    Args:
        batches: the steps.
        parts: how many.

    Example:
        >>> blocks = Blocks(Batches(np.array([0, 2, 3])), 2); out = np.zeros((6, 1))
        >>> blocks.pack(np.arange(6.0).reshape(3, 2), out)
        >>> [block.tolist() for block in blocks.steps(out)]
        [[[[0.0], [4.0]], [[1.0], [5.0]]], [[[2.0]], [[3.0]]]]
    """

    __slots__ = ("_places", "_rows", "_shapes")

    def __init__(self, batches: Batches, parts: int) -> None:
        n, starts = len(batches.rows), np.array(batches.starts)
        sizes, each = np.diff(starts), np.arange(parts)
        self._shapes = [(parts, size) for size in sizes.tolist()]
        first = np.arange(n) + np.repeat(
            starts[:-1] * (parts - 1), sizes
        )  # of each packed row, the place of its part 0
        self._places = first[:, None] + np.repeat(sizes, sizes)[:, None] * each
        self._rows = np.empty(n * parts, "int64")
        self._rows[self._places] = batches.rows[:, None] * parts + each

    def pack(self, x: Array, out: Array) -> None:
        """Write rows in blocks.

        Args:
            x: [n, parts · width], in the order of the input.
            out: [n · parts, width], written.
        """
        if len(self._rows):
            x.reshape(out.shape).take(self._rows, 0, out, "clip")

    def rows(self, blocks: Array, out: Array) -> None:
        """Write blocks row by row.

        Args:
            blocks: [n · parts, width].
            out: [n, parts, width], written, in packed order.
        """
        if len(self._rows):
            blocks.take(self._places, 0, out, "clip")

    def steps(self, blocks: Array) -> Iterator[Array]:
        """The block of each step.

        Args:
            blocks: [n · parts, width].

        Yields:
            A view [parts, rows, width].
        """
        start = 0
        for parts, rows in self._shapes:
            yield blocks[start : start + parts * rows].reshape(parts, rows, -1)
            start += parts * rows
