"""LoD arithmetic: offsets and lengths of sequences in a tensor's rows.

A LoD has a tuple of offsets per level, from the coarsest to the finest. Offsets of the last level count rows, those of
the levels above count sequences of the next level. ``((0, 2, 3), (0, 2, 5, 6))`` is two groups: one with sequences of
2 and 3 rows, one with a sequence of 1 row. In lengths: ``[[2, 1], [2, 3, 1]]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fluidnb.errors import FluidError, OpTypeError, OpValueError
from fluidnb.values.lod_text import draw, draw_wrong

#: The form inside: a tuple of ascending int offsets per level.
Offsets = tuple[tuple[int, ...], ...]


class LoD(list[list[int]]):
    """A LoD as users see it: a list of lists of offsets, each level relative to the next.

    Args:
        levels: offsets per level, or one flat list for a single level.

    Example:
        >>> LoD([0, 5, 8])
        LoD([[0, 5, 8]])
        >>> LoD([[0, 1, 2], [0, 5, 8]]).to_absolute()
        [[0, 5, 8], [0, 5, 8]]
    """

    def __init__(self, levels: Any = ()) -> None:
        offsets = convert(levels)
        check(offsets)
        super().__init__(map(list, offsets))

    @classmethod
    def from_absolute(cls, levels: Any) -> LoD:
        """From offsets that all count rows, as older texts write them.

        Example:
            >>> LoD.from_absolute([[0, 5, 8, 10, 14], [0, 2, 3, 5, 7, 8, 10, 13, 14]])
            LoD([[0, 3, 5, 6, 8], [0, 2, 3, 5, 7, 8, 10, 13, 14]])
        """
        return cls(from_absolute(convert(levels)))

    @classmethod
    def from_lengths(cls, lengths: Any) -> LoD:
        """From sequence lengths per level.

        Example:
            >>> LoD.from_lengths([[2, 1], [2, 3, 1]])
            LoD([[0, 2, 3], [0, 2, 5, 6]])
        """
        return cls(from_lengths(convert(lengths)))

    def to_absolute(self) -> list[list[int]]:
        """The offsets of every level counted in rows."""
        return [list(level) for level in to_absolute(convert(self))]

    def to_lengths(self) -> list[list[int]]:
        """The lengths of the sequences of every level."""
        return to_lengths(convert(self))

    def __repr__(self) -> str:
        return f"LoD({super().__repr__()})"


def convert(levels: Any) -> Offsets:
    """Any user form (lists, tuples, arrays; flat for one level) to tuples of ints, unchecked otherwise."""
    try:
        rows = list(levels)
        if rows and all(isinstance(x, (int, np.integer)) for x in rows):
            rows = [rows]
        if any(not isinstance(x, (int, np.integer)) or isinstance(x, bool) for row in rows for x in row):
            raise TypeError
        return tuple(tuple(int(x) for x in row) for row in rows)
    except TypeError:
        raise OpTypeError(
            "A LoD is a list of lists of integers.", expected="for example [[0, 2, 5]]", received=repr(levels)[:200]
        ) from None


def problem(lod: Offsets, height: int | None = None) -> str | None:
    """The error of offsets as a sentence, or None; ``height`` is the rows of the tensor, None when unknown."""
    for k, level in enumerate(lod):
        if len(level) < 2:
            return f"level {k} has {len(level)} offsets; it needs 2 or more"
        if level[0] != 0:
            return f"level {k} starts at {level[0]}, not at 0"
        if any(b < a for a, b in zip(level, level[1:], strict=False)):
            a, b = next((a, b) for a, b in zip(level, level[1:], strict=False) if b < a)
            return f"level {k} falls from {a} to {b}"
        if k + 1 < len(lod) and level[-1] != len(lod[k + 1]) - 1:
            return f"level {k} ends at {level[-1]}, but level {k + 1} has {len(lod[k + 1]) - 1} sequences"
    if lod and height is not None and lod[-1][-1] != height:
        return f"the last level ends at {lod[-1][-1]}, but the tensor has {height} rows"
    return None


def check(lod: Offsets, height: int | None = None, name: str = "") -> None:
    """Refuses offsets that are not a LoD of a tensor with ``height`` rows (None: no rows yet)."""
    wrong = problem(lod, height)
    if wrong is None:
        return
    raise OpValueError(
        f"The provided LoD{f' of {name}' if name else ''} is invalid: {wrong}.",
        received=str([list(level) for level in lod])[:200], hint=_other_form(lod, height), batch=_drawn(lod, height),
    )  # fmt: skip


def _drawn(lod: Offsets, height: int | None) -> list[str]:
    """The error of a LoD, as a drawing; absolute offsets are also shown as lengths."""
    if len(lod) > 1 and is_absolute(lod, height):
        return ["  ".join(draw(from_absolute(lod), lod[-1][-1]))]
    return draw_wrong(lod, height)


def _other_form(lod: Offsets, height: int | None) -> str:
    """A hint for offsets that are no LoD: what they would be right as."""
    if len(lod) > 1 and is_absolute(lod, height):
        equal = [list(level) for level in from_absolute(lod)]
        return (
            f"these look like absolute offsets; the relative equivalent is {equal}. "
            "LoD.from_absolute(...) and set_lod(lod, absolute=True) convert."
        )
    if are_lengths(lod, height):
        equal = [list(level) for level in from_lengths(lod)]
        return f"these look like lengths, which set_recursive_sequence_lengths takes; the offsets are {equal}."
    return "offsets of a level count the sequences of the next one; set_recursive_sequence_lengths takes lengths."


def are_lengths(levels: Offsets, height: int | None = None) -> bool:
    """Whether numbers can only be meant as lengths: no level begins with 0, as offsets do.

    Example:
        >>> are_lengths(((2, 3),)), are_lengths(((0, 2, 5),))
        (True, False)
    """
    return all(level and min(level) > 0 for level in levels) and problem(from_lengths(levels), height) is None


def checked_lengths(
    lengths: Offsets, height: int | None = None, name: str = "", kind: type[FluidError] = OpValueError
) -> Offsets:
    """The offsets for sequence lengths; lengths that do not fit are refused.

    Example:
        >>> checked_lengths(((2, 1), (2, 3, 1)), 6)
        ((0, 2, 3), (0, 2, 5, 6))
    """
    lod = from_lengths(lengths)
    below = next((n for level in lengths for n in level if n < 0), None)
    wrong = f"a sequence of {below} rows" if below is not None else problem(lod, height)
    if wrong is None:
        return lod
    hint = "upper-level lengths count sub-sequences; last-level lengths count rows."
    if below is None and problem(lengths, height) is None:
        hint = f"these look like offsets, which set_lod takes; the lengths are {to_lengths(lengths)}."
    raise kind(
        f"The provided lod info{f' of {name}' if name else ''} is invalid: {wrong}.",
        received=f"lengths {[list(level) for level in lengths]}"[:200], hint=hint, batch=draw_wrong(lod, height),
    )  # fmt: skip


def from_absolute(lod: Offsets) -> Offsets:
    """Offsets that all count rows to relative ones.

    Where empty sequences make several answers right, they belong to the later group.
    """
    if not is_absolute(lod, None):
        raise OpValueError(
            "These are not absolute LoD offsets.",
            expected="levels that start at 0, never fall, end at the same row, and cut only where the next level cuts",
            received=str([list(level) for level in lod])[:200],
        )
    relative: list[tuple[int, ...]] = list(lod[-1:])
    for upper, lower in zip(lod[-2::-1], lod[:0:-1], strict=True):
        first = {row: i for i, row in reversed(list(enumerate(lower)))}
        first[lower[-1]] = len(lower) - 1  # trailing empty sequences belong to the last group
        inner = tuple(first[row] for row in upper[1:])
        relative.insert(0, (0, *inner))
    return tuple(relative)


def to_absolute(lod: Offsets) -> Offsets:
    """Relative offsets to offsets that all count rows."""
    absolute: list[tuple[int, ...]] = list(lod[-1:])
    for level in lod[-2::-1]:
        absolute.insert(0, tuple(absolute[0][i] for i in level))
    return tuple(absolute)


def from_lengths(lengths: Iterable[Sequence[int]]) -> Offsets:
    """Sequence lengths per level, for example ``[[2, 1], [2, 3, 1]]``, to offsets."""
    levels = []
    for level in lengths:
        offsets = [0]
        for n in level:
            offsets.append(offsets[-1] + n)
        levels.append(tuple(offsets))
    return tuple(levels)


def to_lengths(lod: Offsets) -> list[list[int]]:
    """Offsets to sequence lengths per level."""
    return [[b - a for a, b in zip(level, level[1:], strict=False)] for level in lod]


def is_absolute(lod: Offsets, height: int | None = None) -> bool:
    """Whether offsets can be absolute ones: Fluid's CheckAbsLoD, and each level cuts only where the next one does.

    Example:
        >>> is_absolute(((0, 2, 5), (0, 2, 4, 5))), is_absolute(((0, 2), (0, 2, 5)))
        (True, False)
    """
    end = lod[-1][-1] if lod and lod[-1] else 0
    if height is not None and end != height:
        return False
    if any(problem((level,), end) is not None for level in lod):
        return False
    return all(set(upper) <= set(lower) for upper, lower in zip(lod, lod[1:], strict=False))
