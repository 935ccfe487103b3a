"""LoDRankTable: the sequences of a batch by falling length."""

from __future__ import annotations

from fluidnb.errors import EnforceNotMet
from fluidnb.values.lod import Offsets


class LoDRankTable:
    """The sequences of one LoD level by falling length; equal ones keep their order.

    Example:
        >>> LoDRankTable(((0, 5, 8, 10, 14),)).items()
        [(0, 5), (3, 4), (1, 3), (2, 2)]
    """

    __slots__ = ("__weakref__", "_items", "coarse_lod", "level")

    def __init__(self, lod: Offsets = (), level: int = 0) -> None:
        self._items: list[tuple[int, int]] = []
        self.coarse_lod: Offsets = ()
        self.level = level
        if lod:
            self.reset(lod, level)

    def reset(self, lod: Offsets, level: int = 0) -> None:
        """Ranks the sequences of another LoD."""
        if not 0 <= level < len(lod):
            raise EnforceNotMet(
                f"Cannot rank lod: there is no level {level} in a LoD of {len(lod)} levels.",
                hint="feed sequences: a variable made with lod_level=1 or more.",
            )
        offsets = lod[level]
        lengths = [(i, b - a) for i, (a, b) in enumerate(zip(offsets, offsets[1:], strict=False))]
        self._items = sorted(lengths, key=lambda item: -item[1])
        self.coarse_lod, self.level = lod[:level], level

    def become(self, other: LoDRankTable) -> None:
        """Takes the content of another table."""
        self._items, self.coarse_lod, self.level = list(other._items), other.coarse_lod, other.level

    def items(self) -> list[tuple[int, int]]:
        """(index, length) of each sequence, longest first."""
        return list(self._items)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LoDRankTable):
            return NotImplemented
        return (self._items, self.coarse_lod, self.level) == (other._items, other.coarse_lod, other.level)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"LoDRankTable({self._items})"
