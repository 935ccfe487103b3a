"""Whether a handle still belongs to its program, and the error that says what became of it when it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidnb.errors import OpValueError
from fluidnb.utils.source_location import capture

if TYPE_CHECKING:
    from fluidnb.program.block import Block
    from fluidnb.program.operator import Operator
    from fluidnb.program.variable import Variable
    from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc


class ReplacedError(OpValueError):
    """A handle of something that is no longer part of its program."""


def block_lives(block: BlockDesc | None) -> bool:
    """Whether a block is one of its program's blocks."""
    if block is None or block.program is None:
        return False
    blocks, idx = block.program.blocks, block.pb.idx
    return idx < len(blocks) and blocks[idx] is block


def var_lives(desc: VarDesc) -> bool:
    """Whether a variable is in a block of its program."""
    block = desc.block
    return block is not None and block.vars.get(desc.name()) is desc and block_lives(block)


def op_lives(desc: OpDesc) -> bool:
    """Whether an operator is in a block of its program; looks through the block."""
    block = desc.block
    return block_lives(block) and block is not None and any(op is desc for op in reversed(block.ops))


def is_live(variable: Variable) -> bool:
    """Whether a variable is still part of its program, and the program of its cell."""
    made_by, desc = variable.block.program.origin, variable.desc
    block = desc.block
    if block is None or block.vars.get(desc._name) is not desc or made_by is not None and made_by.fate:
        return False
    blocks = None if block.program is None else block.program.blocks
    return blocks is not None and (bool(blocks) and blocks[0] is block or block_lives(block))


def gone(what: str, view: Variable | Operator | Block, use: str = "used") -> None:
    """Raise the error about a handle that has outlived its description."""
    from fluidnb.program.block import Block

    fate = ""
    program = view.program if isinstance(view, Block) else view.block.program
    for made_by in (view.origin, program.origin):
        if made_by is not None and made_by.fate:
            fate = made_by.fate
    raise ReplacedError(
        f"{what} {fate}." if fate else f"{what} is no longer part of its program.", where=capture(2),
        expected="what is part of the program now", received=f"{what}, {use} after it was taken out",
        hint="take the new one by its name: program.global_block().var(name).",
    )  # fmt: skip
