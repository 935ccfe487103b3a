"""Pruning the description of one block."""

from __future__ import annotations

from collections.abc import Iterable

from fluidnb.errors import NotFound, near
from fluidnb.program.deleted_vars import refuse_dropped
from fluidnb.program.prune import _reachable, _remapped
from fluidnb.program.sub_blocks import inner_blocks
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.where import capture


def prune_block(desc: BlockDesc, targets: Iterable[str]) -> BlockDesc:
    """The part of a block that some variables need: a description, so that it can be shipped and run elsewhere.

    Operators that the targets do not reach go, those with a side effect (print, save, updates of parameters) too. Where
    several operators write a target all of them stay, and the last one has the last word.

    Args:
        desc: the description of a block, of block 0 or an inner one; it does not change.
        targets: names of variables that the block declares or sees.

    Returns:
        A block of a new ProgramDesc. The blocks around it keep the variables that it reads, and no operators.

    Raises:
        NotFound: a name that the block does not see.
        EnforceNotMet: a target that memory_optimize has dropped.

    Example:
        >>> from fluidnb.program import Program
        >>> block = Program().global_block()
        >>> x = block.create_var(name="x", shape=[1], dtype="float32")
        >>> for a, b in [("x", "a"), ("a", "b"), ("x", "d")]:
        ...     op = block.append_op("scale", {"X": a}, {"Out": b}, {"scale": 2.0})
        >>> [op.output("Out") for op in prune_block(block.desc, ["b"]).ops]
        [['a'], ['b']]

    Source: design document "Block and Scope", section on the execution of blocks.
    """
    program, wanted = desc.program, set(targets)
    for name in sorted(wanted):
        if desc.find_var_recursive(name) is None:
            known = [n for block in desc.chain() for n in block.vars]
            raise NotFound(
                f"prune() cannot reach {name}.", where=capture(), expected=f"a variable that block {desc.idx} sees",
                received=name, hint=near(name, known) or "block.vars has them all.",
            )  # fmt: skip
    refuse_dropped(desc, sorted(wanted), "wanted")
    kept = _reachable(program, desc, set(wanted))
    around = list(desc.chain())
    ops: dict[int, list[OpDesc]] = {block.idx: [] for block in around}
    ops[desc.idx] = kept
    for op in kept:
        for index in inner_blocks(program, op):
            ops[index] = list(program.blocks[index].ops)
    new_index = {index: i for i, index in enumerate(sorted(ops))}
    used = {n for row in ops.values() for op in row for n in (*op.input_arg_names(), *op.output_arg_names())} | wanted
    made = ProgramDesc()
    made.pb.CopyFrom(program.pb)
    for index in sorted(ops):
        source = program.blocks[index]
        block = made.blocks[0] if index == 0 else made.append_block(made.blocks[new_index[source.parent_idx]])
        if source.forward_block_idx >= 0:
            block.forward_block_idx = new_index.get(source.forward_block_idx, -1)
        for name, var in source.vars.items():
            if name in used:
                block.add_var(var.clone())
        for op in ops[index]:
            block.append_op(_remapped(op, new_index))
    return made.blocks[new_index[desc.idx]]
