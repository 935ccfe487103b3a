"""Pruning: the part of a program that some targets need."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from fluidnb.errors import NotFound, OpTypeError, OpValueError, near
from fluidnb.program import origin
from fluidnb.program.clone import copy_facts
from fluidnb.program.deleted_vars import refuse_dropped
from fluidnb.program.operator import Operator
from fluidnb.program.program import Program
from fluidnb.program.sub_blocks import inner_blocks, outer_names
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.where import capture


def prune(program: Program, targets: Any, feeds: Collection[str] = ()) -> Program:
    """A program with only what some targets need.

    Args:
        program: the program; it does not change.
        targets: variables, operators or names; one, or a list.
        feeds: names of variables that will be fed, so that what computes them is not needed.

    Returns:
        A new program.

    Raises:
        OpTypeError: a target of another kind.
        OpValueError: a target that block 0 does not have.
        EnforceNotMet: a target that memory_optimize has dropped.

    Example:
        >>> p = Program(); b = p.global_block()
        >>> x = b.create_var(name="x", shape=[1], dtype="float32")
        >>> for out in ("a", "b"):
        ...     op = b.append_op("scale", {"X": x}, {"Out": out}, {"scale": 2.0})
        >>> [op.output("Out") for op in prune(p, "b").global_block().ops]
        [['b']]

    Source: fluid.Program._prune.
    """
    origin.saw_list(program)
    items = targets if isinstance(targets, list | tuple | set) else [targets]
    wanted, kept = set(), set()
    for item in items:
        if isinstance(item, Operator):
            kept.add(_index_of(program, item))
        elif isinstance(item, Variable | str):
            wanted.add(item if isinstance(item, str) else item.name)
        else:
            raise OpTypeError(
                "All targets of prune() can only be Variable or Operator.", where=capture(),
                expected="a Variable, an Operator or a name", received=f"{item!r} ({type(item).__name__})"[:200],
                hint="give what shall still be computed, for example prune([loss]).",
            )  # fmt: skip
    desc, places = _pruned(program.desc, wanted, kept, feeds)
    made = Program(desc)
    made._random_seed = program._random_seed
    copy_facts(program, made, {old.idx: new.idx for old, new, _ in places})
    for _, new_block, ops in places:
        block = made.block(new_block.idx)
        for op, twin in zip(ops, new_block.ops, strict=True):
            if op.view is not None:
                Operator.over(block, twin, op.view.where)
    return made


def prune_desc(desc: ProgramDesc, targets: Iterable[str]) -> ProgramDesc:
    """The part of a description that some variables need; it can be shipped and run elsewhere.

    Args:
        desc: the description; it does not change.
        targets: names of variables of block 0.

    Returns:
        A new description.

    Raises:
        OpValueError: a name that no operator writes, or a feed operator behind another operator.

    Example:
        >>> p = Program(); x = p.global_block().create_var(name="x", shape=[1], dtype="float32")
        >>> prune_desc(p.desc, ["x"]).num_blocks()
        1
    """
    return _pruned(desc, set(targets), set())[0]


def _index_of(program: Program, operator: Operator) -> int:
    """The place of an operator of block 0."""
    block = operator.desc.block
    if block is not program.desc.blocks[0]:
        raise OpValueError(
            f"prune() cannot start from {operator.desc.label()}.", where=capture(2), received=operator.desc.label(),
            expected="an operator of block 0 of this very program",
            hint="give the operator that runs the block, or a variable of block 0 that it writes.",
        )  # fmt: skip
    return operator.idx


_Places = list[tuple[BlockDesc, BlockDesc, list[OpDesc]]]


def _pruned(
    desc: ProgramDesc, targets: set[str], kept_ops: set[int], feeds: Collection[str] = ()
) -> tuple[ProgramDesc, _Places]:
    top = desc.blocks[0]
    for name in targets:
        if name not in top.vars:
            raise NotFound(
                f"prune() cannot reach {name}.", where=capture(2), expected="variables of block 0", received=name,
                hint=near(name, top.vars) or "program.global_block().vars has them all.",
            )  # fmt: skip
    _check_feeds(top)
    refuse_dropped(top, sorted(targets), "wanted")
    kept = _reachable(desc, top, set(targets), kept_ops, feeds)
    # Blocks of operators that stay, in their old order, so that parents come before children.
    ops = {0: kept}
    for op in kept:
        for index in inner_blocks(desc, op):
            ops[index] = list(desc.blocks[index].ops)
    old = sorted(ops)
    new_index = {index: i for i, index in enumerate(old)}
    made = ProgramDesc()
    made.pb.CopyFrom(desc.pb)
    places: _Places = []
    for index in old:
        source = desc.blocks[index]
        around = next((b.idx for b in source.chain() if b is not source and b.idx in new_index), 0)
        block = made.blocks[0] if index == 0 else made.append_block(made.blocks[new_index[around]])
        forward = source.forward_block_idx
        if forward >= 0:
            block.forward_block_idx = new_index.get(forward, -1)
        for op in ops[index]:
            block.append_op(_remapped(op, new_index))
        places.append((source, block, ops[index]))
    used = {n for b in made.blocks for op in b.ops for n in (*op.input_arg_names(), *op.output_arg_names())} | targets
    for source, block, _ in places:
        for name, var in source.vars.items():
            if name in used:
                block.add_var(var.clone())
    return made, places


def _check_feeds(top: BlockDesc) -> None:
    types = [op.optype for op in top.ops]
    feeds = [i for i, t in enumerate(types) if t == "feed"]
    if feeds and feeds[-1] != len(feeds) - 1:
        raise OpValueError(
            "All FeedOps are at the beginning of the ProgramDesc.", where=capture(3),
            expected=f"the {len(feeds)} feed operators first", received=f"a feed at place {feeds[-1]}",
        )  # fmt: skip


def _reachable(
    desc: ProgramDesc, top: BlockDesc, needed: set[str], kept_ops: Collection[int] = (), feeds: Collection[str] = ()
) -> list[OpDesc]:
    kept = []
    needed.difference_update(feeds)
    for index in range(len(top.ops) - 1, -1, -1):
        op = top.ops[index]
        reads, writes = outer_names(desc, top, op)
        fetched = op.optype == "fetch" and needed.intersection(reads)
        if op.is_target() or fetched or index in kept_ops or needed.intersection(writes):
            kept.append(op)
            # An earlier writer stays needed: the operator may write only a part, as array_write does.
            needed.update(reads.difference(feeds))
    return kept[::-1]


def _remapped(op: OpDesc, new_index: dict[int, int]) -> OpDesc:
    made = op.clone()
    for name in op.attr_names():
        kind = op.attr_type(name)
        if kind == AttrType.BLOCK:
            made.set_attr(name, new_index[op.attrs[name]], kind)
        elif kind == AttrType.BLOCKS:
            made.set_attr(name, [new_index[i] for i in op.attrs[name]], kind)
    return made
