"""Lint: mistakes in a program, found without running it."""

from collections.abc import Iterator
from dataclasses import dataclass

from fluidnb.arguments import checked
from fluidnb.errors import near
from fluidnb.op import get_op, has_op
from fluidnb.op.attr import REQUIRED
from fluidnb.program import origin
from fluidnb.program.constants import EMPTY_VAR_NAME
from fluidnb.program.program import Program
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.utils.source_location import SourceLocation
from fluidnb.values.dtypes import VarType


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake."""

    kind: str
    message: str  # one sentence
    block: int  # index of the block
    op: int | None = None  # index of the operator in the block, or None
    where: SourceLocation | None = None  # the user's line that made the operator, or None

    def __str__(self) -> str:
        place = f"block {self.block}" + ("" if self.op is None else f", op {self.op}")
        return f"{place}: {self.message}" + ("" if self.where is None else f"  ({self.where.short()})")


@checked
def lint(program: Program | ProgramDesc) -> list[Finding]:
    """Checks a program for common mistakes; the findings in program order."""
    if isinstance(program, Program):
        origin.saw_list(program)
        program = program.desc
    tree = list(_tree(program))
    if tree:
        return tree
    return [finding for block in program.blocks for finding in _block(program, block)]


def _tree(program: ProgramDesc) -> Iterator[Finding]:
    for place, block in enumerate(program.blocks):
        if block.idx != place:
            yield Finding("block-tree", f"the block at place {place} says that it is block {block.idx}.", place)
        parent = block.parent_idx
        if (place == 0) != (parent == -1) or parent >= place:
            yield Finding("block-tree", f"its parent cannot be block {parent}.", place)
        if block.forward_block_idx >= place:
            yield Finding("block-tree", f"it cannot walk block {block.forward_block_idx} backwards.", place)


def _block(program: ProgramDesc, block: BlockDesc) -> Iterator[Finding]:
    # written before the block begins: all of the blocks around, persistable and fed variables
    written = {n for b in block.chain() if b is not block for n in b.vars}
    if block.forward_block_idx >= 0:
        written.update(program.blocks[block.forward_block_idx].vars)
    written |= {n for n, v in block.vars.items() if v.persistable() or v.is_data() or v.type() in _GIVEN}
    later = {n for op in block.ops for n in op.output_arg_names()}
    # Nothing writes data of programs without the mark for fed variables: what no operator writes must be fed.
    written |= {n for n in block.vars if n not in later and block.idx == 0}
    for index, op in enumerate(block.ops):
        where = None if op.view is None else op.view.where
        for kind, message in _op(program, block, op, written):
            yield Finding(kind, message, block.idx, index, where)
        written.update(op.output_arg_names())


_GIVEN = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.STEP_SCOPES, VarType.RAW, VarType.READER)


def _op(program: ProgramDesc, block: BlockDesc, op: OpDesc, written: set[str]) -> Iterator[tuple[str, str]]:
    if not has_op(op.optype):
        from fluidnb.op import all_ops

        hint = near(op.optype, [d.type for d in all_ops()])
        yield "unknown-op", f"operator {op.optype} has not been registered. {hint}".rstrip()
    for slot, names in op.ins.items():
        for name in names:
            if name == EMPTY_VAR_NAME:
                continue
            if not block.has_var_recursive(name):
                yield "undeclared", f"{op.optype} reads {name} in slot {slot}, which is not declared here or around."
            elif name not in written and name not in op.output_arg_names() and block.idx == 0:
                # an inner block may be an iteration, which reads what the one before wrote
                first = f"{op.optype} reads {name} in slot {slot} before anything writes it"
                yield "read-before-write", f"{first}; feed it or make it persistable."
    seen: set[str] = set()
    for slot, names in op.outs.items():
        for name in names:
            if name == EMPTY_VAR_NAME:
                continue
            if not block.has_var_recursive(name):
                yield "undeclared", f"{op.optype} writes {name} in slot {slot}, which is not declared here or around."
            if name in seen:
                yield "duplicate-output", f"{op.optype} writes {name} twice."
            seen.add(name)
    yield from _attrs(program, op)


def _attrs(program: ProgramDesc, op: OpDesc) -> Iterator[tuple[str, str]]:
    for name in op.attr_names():
        kind = op.attr_type(name)
        if kind in (AttrType.BLOCK, AttrType.BLOCKS):
            value = op.attrs[name]
            for index in [value] if kind == AttrType.BLOCK else value:
                if not 0 < index < len(program.blocks):
                    yield "block-attr", f"{op.optype} runs block {index} by {name}, which is no inner block."
    if not has_op(op.optype):
        return
    definition = get_op(op.optype)
    for name, spec in definition.attrs.items():
        if spec.default is REQUIRED and not op.has_attr(name):
            yield "missing-attr", f"{op.optype} needs attribute {name} ({spec.kind})."
    for name, slot in definition.inputs.items():
        if not slot.dispensable and not op.ins.get(name):
            yield "missing-input", f"{op.optype} needs input {name} ({slot.doc})."
