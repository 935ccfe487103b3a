"""The blocks that an operator runs."""

from collections.abc import Iterator

from fluidnb.op import EMPTY, GRAD, get_op, has_op
from fluidnb.program.constants import SAVED
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import AttrType

_BLOCK, _BLOCKS = AttrType.BLOCK, AttrType.BLOCKS


def own_blocks(op: OpDesc) -> list[int]:
    """The blocks that an operator names in its attributes, without those inside them."""
    indices: list[int] = []
    for name in op.attr_names():
        kind = op.attr_type(name)
        if kind == _BLOCK:
            indices.append(op.attrs[name])
        elif kind == _BLOCKS:
            indices += op.attrs[name]
    return indices


def each_op(desc: ProgramDesc, block: int = 0) -> Iterator[tuple[BlockDesc, int, OpDesc]]:
    """The operators that a block runs, each followed by those of the blocks that it runs."""
    home = desc.blocks[block]
    for index, op in enumerate(home.ops):
        yield home, index, op
        for inner in own_blocks(op):
            yield from each_op(desc, inner)


def forward_op(grad: OpDesc) -> OpDesc | None:
    """The last operator before a gradient operator with its operands; None without one, or for no gradient operator."""
    block = grad.block
    if block is None or block.program is None or not has_op(grad.optype) or not get_op(grad.optype).is_grad:
        return None
    type = grad.optype.removesuffix("_grad")
    forward = None
    for home in block.program.blocks:
        for op in home.ops:
            if op is grad and home is block:
                break
            if op.optype == type and _is_gradient_of(grad, op):
                forward = op
    return forward


def _is_gradient_of(grad: OpDesc, op: OpDesc) -> bool:
    """Whether the operands of a gradient operator are those of an operator, and their gradients."""
    met = False
    for slot, names in (*op.ins.items(), *op.outs.items()):
        if slot in grad.ins:
            if [name.partition(SAVED)[0] for name in grad.ins[slot]] != names:
                return False
            met = True
        for gradients in (grad.ins.get(slot + GRAD), grad.outs.get(slot + GRAD)):
            for name, base in zip(gradients or (), names, strict=False):
                if name != EMPTY and GRAD in name:
                    if name.partition(GRAD)[0] != base:
                        return False
                    met = True
    return met


#: Operators that find variables of the block that they run by the names of outer ones, or of the gradients of these.
_BY_NAME = frozenset({"recurrent", "recurrent_grad", "while_grad", "conditional_block_grad"})


def found_by_name(home: BlockDesc, name: str) -> OpDesc | None:
    """The operator that finds a variable inside by the name of an outer one, where a variable is one of the two."""
    blocks = home.program.blocks
    for block, op in ((b, op) for b in blocks for op in b.ops if op.optype in _BY_NAME):
        outer = {n for slots in (op.ins, op.outs) for slot in slots if not slot.endswith(GRAD) for n in slots[slot]}
        outer |= {n for attr in ("states", "ex_states") for n in op.attrs.get(attr, ())}
        partners = {n + GRAD: n for n in outer if op.optype != "recurrent"}
        if op.optype.startswith("recurrent"):
            partners |= {n: n for n in outer}
        for inner in [blocks[i] for i in own_blocks(op) if 0 <= i < len(blocks)]:
            inside = [inner, *(blocks[i] for i in [inner.forward_block_idx] if i >= 0)]
            known = {n: b for b in inside for n in b.vars if n in partners}
            if known.get(name) is home or any(partners[n] == name for n in known) and home in block.chain():
                return op
    return None


def inner_blocks(desc: ProgramDesc, op: OpDesc) -> list[int]:
    """The blocks that an operator runs, and those inside them."""
    indices: dict[int, None] = {}
    waiting = own_blocks(op)
    while waiting:
        index = waiting.pop()
        if index > 0 and index not in indices:
            indices[index] = None
            for inside in desc.blocks[index].ops:
                waiting += own_blocks(inside)
    return sorted(indices)


def outer_names(desc: ProgramDesc, home: BlockDesc, op: OpDesc) -> tuple[set[str], set[str]]:
    """Names of outer variables that an operator (reads, writes), through the blocks that it runs too."""
    reads, writes = set(op.input_arg_names()), set(op.output_arg_names())
    seen = {block.idx for block in home.chain()}
    for index in inner_blocks(desc, op):
        block = desc.blocks[index]
        for inside in block.ops:
            for names, outer in ((inside.input_arg_names(), reads), (inside.output_arg_names(), writes)):
                for name in names:
                    var = block.find_var_recursive(name)
                    if var is None or var.block is None or var.block.idx in seen:
                        outer.add(name)
    return reads, writes
