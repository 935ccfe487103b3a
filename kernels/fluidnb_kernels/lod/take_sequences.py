"""Taking whole sequences out of a tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Context

Array = Any
Offsets = tuple[tuple[int, ...], ...]


def offsets(lengths: Iterable[int]) -> tuple[int, ...]:
    """Where sequences of some lengths begin, and where the last one ends.

    Example:
        >>> offsets([2, 0, 3])
        (0, 2, 2, 5)
    """
    ends = [0]
    for n in lengths:
        ends.append(ends[-1] + n)
    return tuple(ends)


def cut(lod: Offsets, picks: Sequence[int]) -> tuple[Offsets, Array]:
    """Some sequences of the first level, in a given order.

    Args:
        lod: offsets of the level that is picked from and of those below; () when each row stands for itself.

    Returns:
        (the LoD of what is picked, int64 numbers of its rows).

    Example:
        >>> cut(((0, 2, 3, 7),), [2, 0])
        (((0, 4, 6),), array([3, 4, 5, 6, 0, 1]))
    """
    levels, inside = [], list(picks)
    for level in lod:
        levels.append(offsets(level[i + 1] - level[i] for i in inside))
        inside = [j for i in inside for j in range(level[i], level[i + 1])]
    return tuple(levels), np.array(inside, np.int64)


def sequences(lod: Offsets, rows: int) -> int:
    """How many sequences the first level has; without a level, the number of rows.

    Example:
        >>> sequences(((0, 2, 5),), 5), sequences((), 5)
        (2, 5)
    """
    return len(lod[0]) - 1 if lod else rows


def stacked(first: Offsets, second: Offsets) -> Offsets:
    """The LoD of one tensor's rows followed by another's.

    Example:
        >>> stacked(((0, 2, 5),), ((0, 1),))
        ((0, 2, 5, 6),)
    """
    return tuple((*a, *(a[-1] + n for n in b[1:])) for a, b in zip(first, second, strict=True))


def level_of(c: Context, lod: Offsets, slot: str = "X") -> Offsets:
    """The levels of a LoD from Attr(level) down; () for a tensor without sequences.

    Raises:
        RuleError: there is no such level.
    """
    level = c.attr("level")
    c.require(
        0 <= level < max(len(lod), 1), f"Attr(level) of {c.definition.type} must name a level of {slot}.",
        expected=f"0 to {max(len(lod), 1) - 1}" if len(lod) > 1 else "0", received=level,
        hint=f"{c.name(slot)} has {len(lod)} levels of sequences.",
    )  # fmt: skip
    return lod[level:]
