"""The blocks that an operator runs."""

from __future__ import annotations

from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import AttrType

_BLOCK, _BLOCKS = AttrType.BLOCK, AttrType.BLOCKS


def own_blocks(op: OpDesc) -> list[int]:
    """The blocks that an operator names in its attributes, without those inside them.

    Args:
        op: the operator.

    Returns:
        Their indices.

    Example:
        >>> own_blocks(OpDesc("relu"))
        []
    """
    found: list[int] = []
    for name in op.attr_names():
        kind = op.attr_type(name)
        if kind == _BLOCK:
            found.append(op.attrs[name])
        elif kind == _BLOCKS:
            found += op.attrs[name]
    return found


def inner_blocks(desc: ProgramDesc, op: OpDesc) -> list[int]:
    """The blocks that an operator runs, and those inside them.

    Args:
        desc: the program.
        op: one of its operators.

    Returns:
        Their indices, each once.
    """
    found: dict[int, None] = {}
    waiting = own_blocks(op)
    while waiting:
        index = waiting.pop()
        if index > 0 and index not in found:
            found[index] = None
            for inside in desc.blocks[index].ops:
                waiting += own_blocks(inside)
    return sorted(found)


def outer_names(desc: ProgramDesc, home: BlockDesc, op: OpDesc) -> tuple[set[str], set[str]]:
    """What an operator reads and writes as seen from its block, the blocks that it runs included.

    Args:
        desc: the program.
        home: the operator's block.
        op: the operator.

    Returns:
        Names that it reads and names that it writes; not those that live in the blocks that it runs.
    """
    reads, writes = set(op.input_arg_names()), set(op.output_arg_names())
    seen = {block.idx for block in home.chain()}
    for index in inner_blocks(desc, op):
        block = desc.blocks[index]
        for inside in block.ops:
            for names, found in ((inside.input_arg_names(), reads), (inside.output_arg_names(), writes)):
                for name in names:
                    var = block.find_var_recursive(name)
                    if var is None or var.block is None or var.block.idx in seen:
                        found.add(name)
    return reads, writes
