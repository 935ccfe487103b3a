"""BlockGuard: a block inside a ``with``, gone without a trace when the body raises."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from fluidnb.errors import OpTypeError
from fluidnb.program.block import Block
from fluidnb.program.program import Program
from fluidnb.utils.source_location import capture

if TYPE_CHECKING:
    from fluidnb.proto.desc import BlockDesc, OpDesc


class BlockGuard:
    """A block that is current inside a ``with``; when the body raises, its additions are removed.

    Args:
        parent_idx: the block around the new one; the current one when left out.

    Example:
        >>> program = Program()
        >>> with BlockGuard(program) as block:
        ...     block.idx
        1
        >>> with BlockGuard(program):
        ...     raise ValueError("half built")
        Traceback (most recent call last):
        ValueError: half built
        >>> program.num_blocks
        2

    Source: fluid.layers.BlockGuard; here a half-built block does not stay.
    """

    def __init__(self, main_program: Program, parent_idx: int | None = None) -> None:
        if not isinstance(main_program, Program):
            raise OpTypeError(
                "BlockGuard takes a program.", where=capture(), expected="a Program", received=repr(main_program)[:200]
            )
        self.main_program = main_program
        self.parent_idx = parent_idx

    def __enter__(self) -> Block:
        desc = self.main_program.desc
        self._before = self.main_program.current_block_idx
        self._blocks = len(desc.blocks)
        self._marks = [_Mark(block) for block in desc.blocks]
        return self.main_program.create_block(self.parent_idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.main_program.current_block_idx = self._before
        if kind is not None:
            if len(self.main_program.desc.blocks) > self._blocks:
                self.main_program.desc.remove_blocks(self._blocks)
            for mark in self._marks:
                mark.back()


class _Mark:
    """Lengths of a block's lists; later additions can be removed."""

    __slots__ = ("block", "last", "ops", "variables")

    def __init__(self, block: BlockDesc) -> None:
        self.block = block
        self.ops, self.variables = len(block.ops), len(block.vars)
        self.last: OpDesc | None = block.ops[-1] if block.ops else None

    def back(self) -> None:
        """Cut off what was appended."""
        ops = self.block.ops
        if self.last is None or (len(ops) >= self.ops and ops[self.ops - 1] is self.last):
            if len(ops) > self.ops:
                self.block.remove_op(self.ops, len(ops))
        for name in list(self.block.vars)[self.variables :]:
            self.block.remove_var(name)
