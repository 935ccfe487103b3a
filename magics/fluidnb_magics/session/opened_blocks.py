"""The blocks that cells opened, and how users call them: an index, a Python name, the cell that opened them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from fluidnb.errors import OpValueError, near
from fluidnb.program import Block, Program
from fluidnb.proto.desc import BlockDesc
from fluidnb_magics.session.cell_groups import Placed, Spot


@dataclass(frozen=True, slots=True)
class Opened:
    """A block that a cell opened.

    Args:
        key: the cell.
        number: which of the cell's blocks it is, from 1 in the order in which they begin.
        labels: its names, and for each which of the cell's blocks with that name it is.

    Example:
        >>> Opened("loop", 2, {"turns": 1}).is_at(Spot("turns"))
        True
    """

    key: Hashable
    number: int
    labels: dict[str, int]

    def is_at(self, spot: Spot) -> bool:
        """Whether a spot means this block of its cell."""
        return spot.number == (self.labels.get(spot.label) if spot.label else self.number)


class OpenedBlocks:
    """What is known of the blocks of a session.

    Example:
        >>> OpenedBlocks().of(fluid.default_main_program().global_block().desc) is None
        True
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[BlockDesc, Opened] = WeakKeyDictionary()

    def note(self, block: BlockDesc, opened: Opened) -> None:
        """Remember a block.

        Args:
            block: the block.
            opened: who opened it.
        """
        self._known[block] = opened

    def rename(self, pairs: Mapping[Any, Any]) -> None:
        """Pass on what is known of new blocks to the old ones that stay in their places.

        Args:
            pairs: new piece -> old piece.
        """
        for new, old in pairs.items():
            if isinstance(new, BlockDesc) and new in self._known:
                self._known[old] = self._known[new]

    def of(self, block: BlockDesc) -> Opened | None:
        """Who opened a block; None where no ``with`` of a cell filled it."""
        return self._known.get(block)

    def find(
        self, wanted: str, program: Program, cells: Iterable[Placed], apart: Iterable[Hashable] = ()
    ) -> tuple[Hashable, Spot]:
        """The block that a user means.

        Args:
            wanted: its index; a Python name of it, or of what opened it, like ``turns`` or ``ie.true_block``; the cell
                that opened it; ``turns.2`` or ``loop.2`` for the second one of these.
            program: the program.
            cells: all cells in order.
            apart: keys of cells whose blocks do not count.

        Returns:
            The cell that opened it, and which of its blocks it is.

        Raises:
            OpValueError: there is no such block, or no cell can append to it.
        """
        apart = set(apart)
        if wanted.isdecimal():
            return self._by_index(int(wanted), program, apart)
        order = {placed.key: (i, placed) for i, placed in enumerate(cells) if placed.key not in apart}
        there = [o for b in program.desc.blocks if (o := self.of(b)) is not None and o.key in order]
        base, _, digits = wanted.rpartition(".")
        meant = [(wanted, 1), *([(base, int(digits))] if digits.isdecimal() else [])]
        for name, number in meant:
            found = [o for o in there if _is_called(order[o.key][1], name) and o.number == number]
            if found:
                return found[-1].key, Spot("", number)
            found = [o for o in there if o.labels.get(name) == number]
            if found:
                return max(found, key=lambda o: order[o.key][0]).key, Spot(name, number)
        names = list(dict.fromkeys(n for o in there for n in _shown(o) or [order[o.key][1].title]))
        raise OpValueError(
            f"there is no block {wanted}.", expected=", ".join(names) or "no blocks yet", received=wanted,
            hint=near(wanted, names) or "%fluid block lists the blocks, %fluid block open NAME opens one.",
        )  # fmt: skip

    def _by_index(self, index: int, program: Program, apart: set[Hashable]) -> tuple[Hashable, Spot]:
        blocks = program.desc.blocks
        if index >= len(blocks):
            raise OpValueError(
                f"the program has no block {index}.", expected=f"0 to {len(blocks) - 1}", received=index,
                hint="%fluid block lists them.",
            )  # fmt: skip
        opened = self.of(blocks[index])
        if opened is None:
            raise OpValueError(
                f"no cell can append to block {index}.", expected="a block that a `with` of a %%fluid cell filled",
                received="a block that was made otherwise", hint="%fluid block lists the blocks.",
            )  # fmt: skip
        if opened.key in apart:
            raise OpValueError(
                "a cell cannot append to its own block.", expected="a block of another cell", received=index,
                hint="write into the `with` that opens it.",
            )  # fmt: skip
        return opened.key, Spot("", opened.number)

    def block_at(self, program: Program, key: Hashable, spot: Spot) -> BlockDesc | None:
        """The block of a cell, or None while it is not in the program.

        Args:
            program: the program.
            key: the cell that opened it.
            spot: which of its blocks.
        """
        for block in program.desc.blocks:
            opened = self.of(block)
            if opened is not None and opened.key == key and opened.is_at(spot):
                return block
        return None

    def names(self, program: Program) -> list[str]:
        """The names of the blocks of a program, in order.

        Args:
            program: the program.
        """
        known = [opened for block in program.desc.blocks if (opened := self.of(block)) is not None]
        return list(dict.fromkeys(name for opened in known for name in _shown(opened)))

    def called(self, block: BlockDesc) -> list[str]:
        """The names of a block."""
        opened = self.of(block)
        return [] if opened is None else _shown(opened)


def labels(names: Mapping[str, Any], block: Block, opener: object, role: str) -> list[str]:
    """The names of a block that a ``with`` fills.

    Args:
        names: the Python names now.
        block: the block.
        opener: the object whose block it is, or None.
        role: which one, where the object has several.

    Returns:
        Names that mean the block or the object; ``ie.true_block`` for one of several.

    Example:
        >>> body, ie = fluid.default_main_program().global_block(), object()
        >>> labels({"body": body, "ie": ie, "other": 1}, body, ie, "true_block")
        ['body', 'ie', 'ie.true_block']
    """
    plain = [n for n, v in names.items() if not n.startswith("_") and (v is block or v is opener is not None)]
    return plain + [f"{name}.{role}" for name in plain if role and names[name] is opener]


def _shown(opened: Opened) -> list[str]:
    """Its names as one writes them: the longer ones where there are some, a number where a name has several blocks."""
    exact = [name for name in opened.labels if "." in name] or list(opened.labels)
    return [name if opened.labels[name] == 1 else f"{name}.{opened.labels[name]}" for name in exact]


def _is_called(placed: Placed, name: str) -> bool:
    return name in (placed.cell.name, placed.title)
