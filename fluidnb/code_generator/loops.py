"""Loops with gradients, and arrays of tensors, in generated C: what iterations keep, and gradient blocks."""

from dataclasses import dataclass

from fluidnb.code_generator.functions import TYPES, NoCode, Variable
from fluidnb.errors import OpValueError
from fluidnb.op import EMPTY, GRAD
from fluidnb.program.sub_blocks import each_op, own_blocks
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.values.dtypes import VarType, np_dtype

#: Gradient operators that run a block once more, and operators on arrays of tensors.
BACKWARD = ("while_grad", "conditional_block_grad")
ON_ARRAYS = ("write_to_array", "read_from_array", "lod_array_length")
#: What the gradients of a block are called inside it, where a variable around it has their name.
_INSIDE = "@STEP"


@dataclass(frozen=True, slots=True)
class Backward:
    """A gradient block, and the block whose gradient it is.

    Attributes:
        forward: index of that block.
        sums: (name around the operator, name inside the block) of gradients that are added up over iterations.
        loops: whether the block is that of a ``while``.
    """

    forward: int
    sums: tuple[tuple[str, str], ...]
    loops: bool


def has_loops(desc: ProgramDesc) -> bool:
    """Whether a program has what needs a bound on its iterations."""
    return any(op.optype in (*ON_ARRAYS, "while_grad") for _, _, op in each_op(desc))


def backward_of(op: OpDesc, home: BlockDesc) -> Backward:
    """The gradient block of an operator; its own gradients get names that no other block has.

    Raises:
        NoCode: it is inside another block.
    """
    if home.idx:
        raise NoCode("a loop or branch with a gradient inside another one")
    slot = "StepScopes" if op.optype == "while_grad" else "Scope"
    forward = next((other for other in home.ops if other.outs.get(slot) == op.ins[slot]), None)
    if forward is None:
        raise NoCode(f"{op.optype} without the operator that it is the gradient of")
    [index], [inside] = own_blocks(forward), own_blocks(op)
    assert home.program is not None
    block = home.program.blocks[inside]
    sums = []
    for slot in [s for s in op.ins if s + GRAD in op.outs]:
        for name, total in zip(op.ins[slot], op.outs[slot + GRAD], strict=True):
            own = block.vars.get(name + GRAD)
            if total != EMPTY and own is not None and own.type() == VarType.LOD_TENSOR:
                sums.append((total, _renamed(block, name + GRAD)))
    return Backward(index, tuple(sums), op.optype == "while_grad")


def _renamed(block: BlockDesc, name: str) -> str:
    """The new name of a variable of a block."""
    new = name + _INSIDE
    if new not in block.vars:
        block.rename_var(name, new)
    return new


def arrays_of(desc: ProgramDesc) -> dict[str, Variable]:
    """The arrays of tensors of a program: their elements as variables."""
    found: dict[str, Variable] = {}
    for home, _, op in each_op(desc):
        if op.optype not in ON_ARRAYS[:2]:
            continue
        writes = op.optype == "write_to_array"
        [array], [element] = (op.outs["Out"], op.ins["X"]) if writes else (op.ins["X"], op.outs["Out"])
        var = home.find_var_recursive(element)
        if var is None or var.type() != VarType.LOD_TENSOR:
            raise NoCode(f"{element} is no tensor")
        like = home.find_var_recursive(op.ins.get("X_W", [""])[0])
        if like is not None and not writes:  # a gradient has the shape of its variable, which is not declared
            var.set_shape(like.shape())
        shape, dtype = tuple(var.shape()), np_dtype(var.dtype())
        known = found.setdefault(array, Variable(array, shape, dtype, "array"))
        if any(n < 0 for n in shape) or dtype.name not in TYPES or (known.shape, known.dtype) != (shape, dtype):
            raise OpValueError(
                f"{array} has no fixed size in C.", expected="an array whose elements have one fixed shape and dtype",
                received=f"{element} of shape {list(shape)}, {dtype}; elements are {list(known.shape)}, {known.dtype}",
                hint="give the feeds' sizes: feeds={'x': [1, 3, 224, 224]}.",
            )  # fmt: skip
    return found
