"""Shared by the tests of sequence operators: lengths, and a reference that works on one sequence at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

#: One level; an empty sequence in the middle; empty ones at both ends; two levels.
LENGTHS = {
    "": [[2, 3, 1]],
    "/empty": [[2, 0, 3]],
    "/ends": [[0, 4, 0]],
    "/deep": [[2, 1], [2, 3, 1]],
}


def split(x: np.ndarray, lengths: list[list[int]]) -> list[np.ndarray]:
    """The sequences of the last level."""
    return np.split(x, np.cumsum(lengths[-1])[:-1])


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """Sequences one after the other."""
    return np.concatenate(parts)


def each(x: np.ndarray, lengths: list[list[int]], function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of each sequence, the results one after the other."""
    return joined([function(part) for part in split(x, lengths)])


def outer(value: np.ndarray, lengths: list[list[int]]) -> object:
    """A result with the LoD of the levels above the last."""
    return (value, lengths[:-1]) if len(lengths) > 1 else value


def rows(lengths: list[list[int]]) -> int:
    """The number of rows of sequences of these lengths."""
    return sum(lengths[-1])


def starts(lengths: list[list[int]]) -> Iterator[int]:
    """The first row of each sequence."""
    return iter([0, *np.cumsum(lengths[-1])[:-1].tolist()])
