"""Finds the condition that selects the branch of each row, and the variables that are split by it."""

from collections.abc import Iterator

from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.layers.control_flow.body import operand
from fluidnb.layers.creation import cast, fill_constant_batch_size_like
from fluidnb.layers.math import elementwise_mul
from fluidnb.layers.shape import unsqueeze
from fluidnb.op import get_op, infer_compile
from fluidnb.program import Block, Parameter, Variable
from fluidnb.values.dtypes import VarType, dtype_name


def check_condition(cond: object) -> None:
    """Raise unless a condition is a bool for each row, or one for all."""
    expected = "bool of shape [N, 1] or [N], one for each row, or of shape [1] for all"
    hint = "layers.less_than() and its like make one."
    if not isinstance(cond, Variable):
        raise OpTypeError("cond must be a Variable", expected=expected, received=typed(cond), hint=hint)
    if dtype_name(cond.dtype) != "bool":
        raise OpTypeError(
            "cond must be a bool variable", slots=[operand("cond", cond)], expected=expected,
            received=dtype_name(cond.dtype), hint=hint,
        )  # fmt: skip
    if any(size != 1 for size in cond.shape[1:]):
        raise OpValueError(
            "cond must have one bool for each row", slots=[operand("cond", cond)], expected=expected,
            received=f"shape {list(cond.shape)}", hint="layers.reduce_all() or reduce_any() make one of several.",
        )  # fmt: skip


def is_one(cond: Variable) -> bool:
    """Whether a condition is a single bool, which decides for the whole batch."""
    return all(size == 1 for size in cond.shape)


def as_column(cond: Variable) -> Variable:
    """A condition as Fluid wants it, [N, 1]; one bool, [1], stays as it is."""
    if len(cond.shape) != 1 or is_one(cond):
        return cond
    column = unsqueeze(cond, axes=[1])
    column.stop_gradient = True
    return column


def spread(cond: Variable, like: Variable) -> Variable:
    """Bool [N, 1] for the rows of a variable, all of them the value of a single one."""
    ones = fill_constant_batch_size_like(like, [-1, 1], "float32", 1.0)
    mask = cast(elementwise_mul(ones, cast(cond, "float32")), "bool")
    mask.stop_gradient = True
    return mask


def has_rows_of(cond: Variable, x: Variable) -> bool:
    """Whether a variable has a row, or a sequence, for each element of a condition, as far as shapes are known."""
    if x.type != VarType.LOD_TENSOR or x.persistable or isinstance(x, Parameter):
        return False
    if x.lod_level:
        return True
    rows = x.shape[0] if x.shape else 1
    return rows == -1 or rows == cond.shape[0]


def read_instead(body: Block, old: str, new: str) -> None:
    """Let a block and the blocks inside it read another outer variable, and infer their shapes anew."""
    for block in _seeing(body, old):
        for op in block.ops:
            if op.type == "recurrent" and old in op.input("inputs"):  # the step is known inside by the same name
                op.block_attr("sub_block").desc.rename_var(old, new)
            op.rename_input(old, new)
    _infer(body)


def _infer(block: Block) -> None:
    for op in block.ops:
        if op.has_attr("sub_block"):
            _infer(op.block_attr("sub_block"))
        infer_compile(get_op(op.type), op.desc, block.desc, op.where)


def _seeing(body: Block, name: str) -> Iterator[Block]:
    """A block and those inside it that see a variable of the blocks around it."""
    seeing = {body.idx}
    yield body
    for block in body.program.blocks[body.idx + 1 :]:
        if block.parent_idx in seeing and not block.has_var(name):
            seeing.add(block.idx)
            yield block
