"""``block.ops`` and ``block.vars``: live views over the description, so that edits through descs are seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

from fluidnb.errors import OpIndexError
from fluidnb.program import origin
from fluidnb.program.operator import Operator
from fluidnb.program.variable import Variable

if TYPE_CHECKING:
    from fluidnb.program.block import Block


class Ops(Sequence[Operator]):
    """The operators of a block, in order."""

    __slots__ = ("_block",)

    def __init__(self, block: Block) -> None:
        self._block = block

    def __len__(self) -> int:
        origin.saw_list(self._block.program)
        return len(self._block.desc.ops)

    @overload
    def __getitem__(self, index: int) -> Operator: ...
    @overload
    def __getitem__(self, index: slice) -> list[Operator]: ...
    def __getitem__(self, index: int | slice) -> Operator | list[Operator]:
        origin.saw_list(self._block.program)
        try:
            descs = self._block.desc.ops[index]
        except IndexError:
            count = len(self._block.desc.ops)
            raise OpIndexError(
                f"Block {self._block.idx} has {count} operator{'s' * (count != 1)}.",
                expected=f"{-count} to {count - 1}" if count else "a block with operators", received=index,
            ) from None  # fmt: skip
        if isinstance(descs, list):
            return [Operator.over(self._block, desc) for desc in descs]
        return Operator.over(self._block, descs)

    def __iter__(self) -> Iterator[Operator]:
        origin.saw_list(self._block.program)
        for desc in self._block.desc.ops:
            yield Operator.over(self._block, desc)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return repr(list(self))


class Vars(Mapping[str, Variable]):
    """The variables that a block declares, by name, in order of declaration."""

    __slots__ = ("_block",)

    def __init__(self, block: Block) -> None:
        self._block = block

    def __getitem__(self, name: str) -> Variable:
        variable = self._block.find_var(name)
        if variable is None:
            raise KeyError(name)
        return variable

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._block.has_var(name)

    def __len__(self) -> int:
        origin.saw_list(self._block.program)
        return len(self._block.desc.vars)

    def __iter__(self) -> Iterator[str]:
        origin.saw_list(self._block.program)
        return iter(self._block.desc.vars)

    def __repr__(self) -> str:
        return repr(dict(self))
