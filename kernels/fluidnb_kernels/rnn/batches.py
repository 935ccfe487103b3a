"""Sequences as batches of time steps: the longest first, so that those still running are the first rows of a step.

Nothing is padded. Step t holds one row of each sequence that is longer than t; its rows follow those of step t - 1 in
one packed array, and row i of a step goes on from row i of the step before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = Any


class Batches:
    """How sequences become steps.

    Args:
        offsets: of the sequences.
        reverse: whether time runs from the last row of a sequence to the first.

    Attributes:
        order: int64: the sequences, the longest first.
        rows: int64: for each packed row, the row of the input.
        places: int64: for each row of the input, its packed row.
        before: int64: for each packed row from step 1 on, the packed row that it goes on from.
        starts: where each step starts in the packed array, and where the last one ends.

    Example:
        >>> steps = Batches(np.array([0, 2, 5, 6]))
        >>> steps.order, steps.rows, steps.starts
        (array([1, 0, 2]), array([2, 0, 5, 3, 1, 4]), [0, 3, 5, 6])
    """

    __slots__ = ("before", "first", "order", "places", "rows", "starts")

    def __init__(self, offsets: Array, reverse: bool = False) -> None:
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
        self.before = np.arange(self.first, len(self.rows)) - np.repeat(sizes[:-1], sizes[1:])

    def __iter__(self) -> Iterator[tuple[slice, slice | None]]:
        """For each step its packed rows, and those of the step before that it goes on from (None for the first)."""
        previous: int | None = None
        for start, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            yield slice(start, end), None if previous is None else slice(previous, previous + end - start)
            previous = start

    def backwards(self) -> Iterator[tuple[slice, slice | None, int]]:
        """The steps from the last to the first, each with how many of its rows go on in the step behind it."""
        going_on = 0
        for now, previous in reversed(list(self)):
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

    def pack_initial(self, x: Array | None, width: int, dtype: Any) -> Array:
        """An initial state for the rows of step 0.

        Args:
            x: [sequences, width], or None for zeros.
            width: its width.
            dtype: its dtype.

        Returns:
            A new array [sequences with rows, width].
        """
        if x is None:
            return np.zeros((self.first, width), dtype)
        return x.take(self.order[: self.first], 0)

    def pack_previous(self, packed: Array, initial: Array, out: Array) -> None:
        """Write for each packed row the state that it goes on from.

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
