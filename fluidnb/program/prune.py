"""Pruning: the part of a program that some targets need; refusal of variables that an operator deletes."""

from collections.abc import Collection, Iterable
from typing import Any

from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError, near, typed
from fluidnb.program import origin
from fluidnb.program.append_op import operands
from fluidnb.program.clone import copy_facts, copy_lines
from fluidnb.program.operator import Operator
from fluidnb.program.program import Program
from fluidnb.program.sub_blocks import inner_blocks, outer_names
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.utils.source_location import capture


def prune(program: Program, targets: Any, feeds: Collection[str] = ()) -> Program:
    """A program with only what some targets need.

    Args:
        targets: variables, operators or names; one, or a list.
        feeds: names of variables that will be fed, so that the operators before them are not needed.

    Example:
        >>> x = fluid.layers.data("x", [2]); a = fluid.layers.relu(x); b = fluid.layers.tanh(x)
        >>> [op.type for op in prune(fluid.default_main_program(), b).global_block().ops]
        ['tanh']

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
                expected="a Variable, an Operator or a name", received=typed(item),
                hint="give what shall still be computed, for example prune([loss]).",
            )  # fmt: skip
    desc, places = _pruned(program.desc, wanted, kept, feeds)
    pruned = Program(desc)
    pruned._random_seed = program._random_seed
    copy_facts(program, pruned, {old.idx: new.idx for old, new, _ in places})
    for _, new_block, ops in places:
        copy_lines(pruned, new_block, ops)
    return pruned


def prune_desc(desc: ProgramDesc, targets: Iterable[str]) -> ProgramDesc:
    """The part of a description that some variables of block 0 need, by name, as a new description."""
    return _pruned(desc, set(targets), set())[0]


def prune_block(desc: BlockDesc, targets: Iterable[str]) -> BlockDesc:
    """The part of a block that some variables need, in a new ProgramDesc.

    Operators that the targets do not reach are left out, also those with a side effect (print, save, updates). All
    operators that write a target stay. The blocks around keep the variables that the block reads, and no operators.

    Args:
        desc: the description of a block, of block 0 or an inner one; it does not change.
        targets: names of variables that the block declares or sees.

    Example:
        >>> x = fluid.layers.data("x", [2]); a = fluid.layers.relu(x); b = fluid.layers.tanh(a); d = fluid.layers.exp(x)
        >>> [op.type() for op in prune_block(x.block.desc, [b.name]).ops]
        ['relu', 'tanh']

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
    places = _rebuilt(program, {block.idx: [] for block in desc.chain()} | {desc.idx: kept}, wanted)
    return next(new for old, new, _ in places if old is desc)


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
    places = _rebuilt(desc, {0: kept}, targets)
    program = places[0][1].program
    assert program is not None
    return program, places


def _rebuilt(desc: ProgramDesc, ops: dict[int, list[OpDesc]], wanted: set[str]) -> _Places:
    """A new description, and (old block, new block, operators) with parents before children."""
    for op in [op for row in ops.values() for op in row]:
        for index in inner_blocks(desc, op):
            ops[index] = list(desc.blocks[index].ops)
    new_index = {index: i for i, index in enumerate(sorted(ops))}
    used = {n for row in ops.values() for op in row for n in (*op.input_arg_names(), *op.output_arg_names())} | wanted
    rebuilt = ProgramDesc()
    rebuilt.pb.CopyFrom(desc.pb)
    places: _Places = []
    for index in new_index:
        source = desc.blocks[index]
        around = next((b.idx for b in source.chain() if b is not source and b.idx in new_index), 0)
        block = rebuilt.blocks[0] if index == 0 else rebuilt.append_block(rebuilt.blocks[new_index[around]])
        if source.forward_block_idx >= 0:
            block.forward_block_idx = new_index.get(source.forward_block_idx, -1)
        for op in ops[index]:
            block.append_op(_remapped(op, new_index))
        for name, var in source.vars.items():
            if name in used:
                block.add_var(var.clone())
        places.append((source, block, ops[index]))
    return places


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
    copy = op.clone()
    for name in op.attr_names():
        kind = op.attr_type(name)
        if kind == AttrType.BLOCK:
            copy.set_attr(name, new_index[op.attrs[name]], kind)
        elif kind == AttrType.BLOCKS:
            copy.set_attr(name, [new_index[i] for i in op.attrs[name]], kind)
    return copy


def dropped(block: BlockDesc) -> dict[str, OpDesc]:
    """Name -> delete_var operator, of the variables without a value at the end of a block."""
    deleted: dict[str, OpDesc] = {}
    for op in block.ops:
        if op.optype == "delete_var":
            deleted.update(dict.fromkeys(op.input_arg_names(), op))
        elif deleted:
            for name in op.output_arg_names():
                deleted.pop(name, None)
    return deleted


def refuse_dropped(block: BlockDesc, names: Iterable[str], wanted: str) -> None:
    """Refuse variables without a value at the end of a block."""
    gone = dropped(block)
    for name in names if gone else ():
        if name in gone:
            label = gone[name].label()
            raise EnforceNotMet(
                f'"{name}" is {wanted}, but {label} drops it before the run ends.', op=label, where=capture(),
                slots=[row for row in operands(block, gone[name]) if row[1] == name],
                expected="a variable that the run keeps", received=f"{name}, which goes after its last use",
                hint="memory_optimize and release_memory leave alone what skip_opt_set names: build the program again, "
                f'then fluid.memory_optimize(program, skip_opt_set=["{name}"]); or clone it before.',
            )  # fmt: skip
