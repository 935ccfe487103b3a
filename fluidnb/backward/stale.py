"""Values that a gradient needs but that a later operator has overwritten.

Fluid computes such gradients from the new value and says nothing. Here it is an error, except for a parameter that an
optimizer has already changed, which earns a warning.
"""

from __future__ import annotations

from fluidnb.errors import Operand, OpValueError
from fluidnb.op import EMPTY, OpDef
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values import dtypes
from fluidnb.values.dtypes import VarType
from fluidnb.where import warn

#: Gradient operators that look only at the shapes of forward values.
SHAPES_ONLY = frozenset(
    {
        "concat_grad",
        "elementwise_add_grad",
        "elementwise_sub_grad",
        "mean_grad",
        "reduce_mean_grad",
        "reduce_sum_grad",
        "reshape_grad",
        "transpose_grad",
    }
)

#: Gradients of products: the value of one factor matters only to the gradient of the other.
CROSSED = frozenset({"elementwise_mul_grad", "matmul_grad", "mul_grad"})


class Freshness:
    """The last writer of every variable of a block.

    Args:
        block: the block, with all its operators.

    Example:
        >>> from fluidnb.program import Program
        >>> Freshness(Program().global_block().desc).last
        {}
    """

    def __init__(self, block: BlockDesc) -> None:
        self.block = block
        self.last: dict[str, int] = {}
        for position, op in enumerate(block.ops):
            for name in op.output_arg_names():
                self.last[name] = position

    def check(self, position: int, op: OpDesc, definition: OpDef, gradient: OpDesc) -> None:
        """Raise when a gradient operator would read a value that is gone.

        Args:
            position: index of the forward operator in the block.
            op: the forward operator.
            definition: its OpDef.
            gradient: its gradient operator, which may read its inputs and outputs.

        Raises:
            OpValueError: one of them is overwritten by the operator itself or by a later one.
        """
        if gradient.optype in SHAPES_ONLY:
            return
        for slot, names in gradient.ins.items():
            if gradient.optype in CROSSED and not _gives(gradient, "Y@GRAD" if slot == "X" else "X@GRAD"):
                continue
            # An output is as it should be after its own operator, an input was read before it.
            after = position if slot in definition.outputs else position - 1
            if slot not in definition.inputs and slot not in definition.outputs:
                continue
            for name in names:
                last = self.last.get(name, -1)
                if name != EMPTY and last > after:
                    self._report(name, slot, position, op, last)

    def _report(self, name: str, slot: str, position: int, op: OpDesc, last: int) -> None:
        var = self.block.find_var_recursive(name)
        if var is None or var.type() != VarType.LOD_TENSOR:  # an array keeps what was written at other places
            return
        writer = self.block.ops[last]
        if writer.attrs.get("op_role", 0) & OpRole.Optimize:
            warn(
                f"The gradient of op {position} ({op.optype}) reads {name} after op {last} ({writer.optype}) has "
                "updated it. Build all losses and their gradients first, then call apply_gradients."
            )
            return
        operand: Operand = (slot, name, dtypes.dtype_name(var.dtype()), var.shape())
        raise OpValueError(
            f"The gradient of {op.optype} needs {name} as {op.optype} saw it, but {writer.optype} overwrites it.",
            op=op.label(), slots=[operand], expected=f"{name} written before op {position} only",
            received=writer.label(), hint="give the later result a variable of its own (in_place=False, or no out=).",
        )  # fmt: skip


def _gives(gradient: OpDesc, slot: str) -> bool:
    """Whether somebody wants an output of a gradient operator."""
    return any(n != EMPTY for n in gradient.outs.get(slot, []))
