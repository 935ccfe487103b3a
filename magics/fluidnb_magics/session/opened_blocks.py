"""The blocks that cells opened, by index, Python name, or the cell that opened them."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from fluidnb.errors import OpValueError, near
from fluidnb.program import Block, Program
from fluidnb.proto.desc import BlockDesc
from fluidnb_magics.session.cell_groups import BlockRef, Placed


@dataclass(frozen=True, slots=True)
class Opened:
    """A block that a cell opened."""

    key: Hashable  # the cell
    number: int  # its number among the cell's blocks, from 1 in the order in which they begin
    labels: dict[str, int]  # its names, and its number among the cell's blocks with that name

    def is_at(self, target: BlockRef) -> bool:
        """Whether a reference means this block of its cell."""
        return target.number == (self.labels.get(target.label) if target.label else self.number)


class OpenedBlocks:
    """The blocks of a session that cells opened."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[BlockDesc, Opened] = WeakKeyDictionary()

    def note(self, block: BlockDesc, opened: Opened) -> None:
        """Remember a block."""
        self._known[block] = opened

    def rename(self, pairs: Mapping[Any, Any]) -> None:
        """Move what is known of new blocks to the old ones that replace them."""
        for new, old in pairs.items():
            if isinstance(new, BlockDesc) and new in self._known:
                self._known[old] = self._known[new]

    def of(self, block: BlockDesc) -> Opened | None:
        """The record of a block; None where no ``with`` of a cell filled it."""
        return self._known.get(block)

    def find(
        self, wanted: str, program: Program, cells: Iterable[Placed], apart: Iterable[Hashable] = ()
    ) -> tuple[Hashable, BlockRef]:
        """The cell that opened a block, and the reference to the block; ``loop.2`` is the second one of a cell."""
        apart = set(apart)
        if wanted.isdecimal():
            return self._by_index(int(wanted), program, apart)
        order = {placed.key: (i, placed) for i, placed in enumerate(cells) if placed.key not in apart}
        there = [o for b in program.desc.blocks if (o := self.of(b)) is not None and o.key in order]
        base, _, digits = wanted.rpartition(".")
        meant = [(wanted, 1), *([(base, int(digits))] if digits.isdecimal() else [])]
        for name, number in meant:
            of_cell = [o for o in there if order[o.key][1].is_called(name) and o.number == number]
            if of_cell:
                return of_cell[-1].key, BlockRef("", number)
            labelled = [o for o in there if o.labels.get(name) == number]
            if labelled:
                return max(labelled, key=lambda o: order[o.key][0]).key, BlockRef(name, number)
        names = list(dict.fromkeys(n for o in there for n in _shown(o) or [order[o.key][1].title]))
        raise OpValueError(
            f"there is no block {wanted}.", expected=", ".join(names) or "no blocks yet", received=wanted,
            hint=near(wanted, names) or "%fluid block lists the blocks, %fluid block open NAME opens one.",
        )  # fmt: skip

    def _by_index(self, index: int, program: Program, apart: set[Hashable]) -> tuple[Hashable, BlockRef]:
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
        return opened.key, BlockRef("", opened.number)

    def block_at(self, program: Program, key: Hashable, target: BlockRef) -> BlockDesc | None:
        """The block of a cell, or None while it is not in the program."""
        known = ((block, self.of(block)) for block in program.desc.blocks)
        return next((b for b, o in known if o is not None and o.key == key and o.is_at(target)), None)

    def names(self, program: Program) -> list[str]:
        """The names of the blocks of a program, in order."""
        known = [opened for block in program.desc.blocks if (opened := self.of(block)) is not None]
        return list(dict.fromkeys(name for opened in known for name in _shown(opened)))

    def called(self, block: BlockDesc) -> list[str]:
        """The names of a block."""
        opened = self.of(block)
        return [] if opened is None else _shown(opened)


def labels(names: Mapping[str, Any], block: Block, opener: object, role: str) -> list[str]:
    """The names of a block that a ``with`` fills, or of its opener: ``ie.true_block`` for one of several."""
    plain = [n for n, v in names.items() if not n.startswith("_") and (v is block or v is opener is not None)]
    return plain + [f"{name}.{role}" for name in plain if role and names[name] is opener]


def _shown(opened: Opened) -> list[str]:
    """Its names as one writes them: the longer ones where there are some, a number where a name has several blocks."""
    exact = [name for name in opened.labels if "." in name] or list(opened.labels)
    return [name if opened.labels[name] == 1 else f"{name}.{opened.labels[name]}" for name in exact]
