"""Cloning programs, and putting a clone into test mode, which keeps backward."""

from collections.abc import Mapping, Sequence

from fluidnb.op import get_op, has_op
from fluidnb.program import origin
from fluidnb.program.constants import OpRole
from fluidnb.program.operator import Operator
from fluidnb.program.printing import is_backward
from fluidnb.program.program import Program
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.utils.source_location import warn as warn_user


def clone(program: Program, for_test: bool = False, warn: bool = True) -> Program:
    """A program with the same contents that shares no object with the first.

    Args:
        for_test: whether to put operators into test mode, and stop learning-rate schedules: a test run
            does not count as a step.
        warn: whether to warn when a test clone still has backward in it.

    Source: fluid.Program.clone.
    """
    origin.saw_list(program)
    if for_test and warn and any(is_backward(op) for block in program.desc.blocks for op in block.ops):
        warn_user(
            "clone(for_test=True) after append_backward or minimize keeps the backward and optimizer operators: "
            "running the clone trains on the test data. Clone before minimize."
        )
    copied = Program(ProgramDesc(program.desc))
    for name in ("_random_seed", "current_block_idx"):
        copied.__dict__[name] = program.__dict__[name]
    copy_facts(program, copied)
    for ours, theirs in zip(program.desc.blocks, copied.desc.blocks, strict=True):
        copy_lines(copied, theirs, ours.ops)
    if for_test:
        for block_desc in copied.desc.blocks:
            for op in block_desc.ops:
                _test_mode(op)
            _stop_counters(block_desc)
    return copied


def copy_lines(program: Program, block: BlockDesc, sources: Sequence[OpDesc]) -> None:
    """Copy the users' lines of operators to the copies of these in a block of a program."""
    view = program.block(block.idx)
    for op, copy in zip(sources, block.ops, strict=True):
        if op.view is not None:
            Operator.over(view, copy, op.view.where)


def remove_readers(program: Program) -> None:
    """Remove the operators of a program up to the one that reads a batch, and all readers, as in Fluid."""
    block = program.global_block()
    read = next((i for i, op in enumerate(block.ops) if op.type == "read"), None)
    if read is not None:
        block.remove_op(0, read + 1)
    for name in [n for n, v in block.desc.vars.items() if v.type() == VarType.READER]:
        block.remove_var(name)


def _test_mode(op: OpDesc) -> None:
    """Set ``is_test`` where the operator has it, also where a loaded program left it out."""
    if op.has_attr("is_test") or has_op(op.optype) and "is_test" in get_op(op.optype).attrs:
        op.set_attr("is_test", True)


def _stop_counters(block: BlockDesc) -> None:
    """Remove counters of learning-rate schedules, which test runs share with training runs."""
    for i in range(len(block.ops) - 1, -1, -1):
        op = block.ops[i]
        if op.optype == "increment" and op.has_attr("op_role") and op.attr("op_role") == OpRole.LRSched:
            block.remove_op(i)


def copy_facts(source: Program, target: Program, blocks: Mapping[int, int] | None = None) -> None:
    """Copy Python facts of variables, as a learning rate; ``blocks`` maps a source's blocks to the target's."""
    skip = {"block", "desc", "origin", "_op", "_params"}
    count = min(len(source.desc.blocks), len(target.desc.blocks))
    for old, new in ({i: i for i in range(count)} if blocks is None else blocks).items():
        theirs = target.desc.blocks[new]
        block = target.block(new)
        for name, desc in source.desc.blocks[old].vars.items():
            twin = theirs.vars.get(name)
            if desc.view is not None and twin is not None:
                facts = {k: v for k, v in desc.view.__dict__.items() if k not in skip}
                facts = {k: dict(v) if isinstance(v, dict) else v for k, v in facts.items()}
                Variable.over(block, twin).__dict__.update(facts)
                twin.saved = None
    target.desc.touch()
