"""Taking whole sequences out of a tensor."""

from collections.abc import Sequence

import numpy as np

from fluidnb.op import Array, Context
from fluidnb_kernels.sequences import as_level

Offsets = tuple[tuple[int, ...], ...]


def cut(lod: Offsets, picks: Sequence[int]) -> tuple[Offsets, Array]:
    """Some sequences of the first level, in a given order: their LoD and the int64 numbers of their rows."""
    levels, inside = [], list(picks)
    for level in lod:
        levels.append(as_level([level[i + 1] - level[i] for i in inside]))
        inside = [j for i in inside for j in range(level[i], level[i + 1])]
    return tuple(levels), np.array(inside, np.int64)


def sequences(lod: Offsets, rows: int) -> int:
    """The number of sequences of the first level; without a level, the number of rows."""
    return len(lod[0]) - 1 if lod else rows


def stacked(first: Offsets, second: Offsets) -> Offsets:
    """The LoD of one tensor's rows followed by another's."""
    return tuple((*a, *(a[-1] + n for n in b[1:])) for a, b in zip(first, second, strict=True))


def level_of(c: Context, lod: Offsets, slot: str = "X") -> Offsets:
    """The levels of a LoD from Attr(level) down; () for a tensor without sequences."""
    level = c.attr("level")
    c.require(
        0 <= level < max(len(lod), 1), f"Attr(level) of {c.definition.type} must name a level of {slot}.",
        expected=f"0 to {max(len(lod), 1) - 1}" if len(lod) > 1 else "0", received=level,
        hint=f"{c.name(slot)} has {len(lod)} levels of sequences.",
    )  # fmt: skip
    return lod[level:]
