"""``--in BLOCK``: a cell that goes on with a block which an earlier cell opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fluidnb.errors import OpValueError
from fluidnb.layers.control_flow import reads_and_writes
from fluidnb.program import Program
from fluidnb.proto.desc import BlockDesc, OpDesc

if TYPE_CHECKING:
    from fluidnb_magics.workbench import Workbench

#: Operator -> its slots for the outer variables that its block reads and writes, and the slot that is no block's.
_OWNERS = {"while": ("X", "Out", "Condition"), "conditional_block": ("Input", "Out", "Cond")}


@contextmanager
def continued(bench: Workbench, program: Program, wanted: str) -> Iterator[None]:
    """What is built inside the ``with`` goes to the end of a sub-block.

    Args:
        bench: knows the cells.
        program: the program.
        wanted: the block's index, or the cell that opened it.

    Yields:
        Nothing.

    Raises:
        OpValueError: there is no such block.
    """
    index = find_block(bench, program, wanted)
    before, program.current_block_idx = program.current_block_idx, index
    try:
        yield
        _complete(program, index)
    finally:
        program.current_block_idx = before


def find_block(bench: Workbench, program: Program, wanted: str) -> int:
    """The index of a block.

    Args:
        bench: knows the cells.
        program: the program.
        wanted: an index, or the cell that opened the block: the first one that it opened.

    Returns:
        The index.

    Raises:
        OpValueError: there is no such block.
    """
    blocks = program.desc.blocks
    if wanted.isdigit():
        if int(wanted) < len(blocks):
            return int(wanted)
        raise OpValueError(
            f"the program has no block {wanted}.", expected=f"0 to {len(blocks) - 1}", received=wanted,
            hint="%fluid show draws the blocks.",
        )  # fmt: skip
    opened = {id(op) for delta in bench.find(wanted).deltas if delta.program is program for op in delta.ops()}
    for block in blocks:
        for op in block.ops:
            inner = _inner(op) if id(op) in opened else None
            if inner is not None:
                return inner
    raise OpValueError(
        f"cell {wanted} opened no block.", expected="a cell with a while or a conditional block", received=wanted
    )


def _inner(op: OpDesc) -> int | None:
    index = op.attrs.get("sub_block")
    return None if index is None else int(index)


def _complete(program: Program, index: int) -> None:
    """Tell the operator that runs the block which outer variables the block now reads and writes."""
    owner = _owner(program.desc.blocks, index)
    if owner is None or owner.optype not in _OWNERS:
        return
    ins, outs, condition = _OWNERS[owner.optype]
    written = owner.input(condition) if owner.optype == "while" else ()
    reads, writes = reads_and_writes(program.block(index), written)
    _set(owner, ins, reads, owner.input, owner.set_input)
    _set(owner, outs, writes, owner.output, owner.set_output)


def _set(owner: OpDesc, slot: str, names: list[str], get: Any, put: Any) -> None:
    if list(get(slot)) != names:
        put(slot, names)


def _owner(blocks: list[BlockDesc], index: int) -> OpDesc | None:
    parent = blocks[index].parent_idx
    if parent < 0:
        return None
    return next((op for op in blocks[parent].ops if _inner(op) == index), None)
