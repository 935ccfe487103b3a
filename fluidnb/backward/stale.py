"""Values that a gradient needs but that a later operator has overwritten.

Fluid computes such gradients from the new value and says nothing. Here it is an error, except for a parameter that an
optimizer has already changed, which earns a warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fluidnb.backward.blocks import restored, undo
from fluidnb.errors import Operand, OpValueError
from fluidnb.op import EMPTY, get_op
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values import dtypes
from fluidnb.values.dtypes import VarType
from fluidnb.where import warn

if TYPE_CHECKING:
    from fluidnb.backward.walk import Walk

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
    """The writers of every variable of a block.

    Args:
        block: the block, with all its operators.

    Example:
        >>> from fluidnb.program import Program
        >>> Freshness(Program().global_block().desc).writers
        {}
    """

    def __init__(self, block: BlockDesc) -> None:
        self.block = block
        self.writers: dict[str, list[int]] = {}
        for position, op in enumerate(block.ops):
            for name in dict.fromkeys(op.output_arg_names()):
                self.writers.setdefault(name, []).append(position)

    def check(self, position: int, gradient: OpDesc, walk: Walk) -> None:
        """Raise when a gradient operator would read a value that is gone; take counters back so that it does not.

        Args:
            position: index of the forward operator in the block.
            gradient: its gradient operator, which may read its inputs and outputs.
            walk: the walk to which the gradient operator will be added.

        Raises:
            OpValueError: one of them is overwritten by the operator itself or by a later one.
        """
        op = self.block.ops[position]
        for slot, name, after in self._needs(position, op, gradient, walk):
            for writer in reversed(self.writers.get(name, ())):
                later = self.block.ops[writer]
                if writer > after and not restored(walk, later, name) and not undo(walk, later):
                    self._report(name, slot, position, op, writer)

    def _needs(self, position: int, op: OpDesc, gradient: OpDesc, walk: Walk) -> Iterable[tuple[str, str, int]]:
        """(slot, variable, the last position that may write it) of the forward values that a gradient reads."""
        inner = walk.inner.get(id(gradient))
        if inner is not None:  # what an iteration leaves of its own, and of what it changes outside, is kept
            reads, writes = _touched(inner)
            changed = set(op.output_arg_names())
            return [("X", n, position) for n in sorted(reads) if n not in changed or n in writes]
        if gradient.optype in SHAPES_ONLY:
            return []
        definition = get_op(op.optype)
        needs = []
        for slot, names in gradient.ins.items():
            if gradient.optype in CROSSED and not _gives(gradient, "Y@GRAD" if slot == "X" else "X@GRAD"):
                continue
            if slot not in definition.inputs and slot not in definition.outputs:
                continue
            # An output is as it should be after its own operator, an input was read before it.
            after = position if slot in definition.outputs else position - 1
            needs += [(slot, n, after) for n in names if n != EMPTY]
        return needs

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


def _touched(walk: Walk) -> tuple[set[str], set[str]]:
    """The variables of blocks around that the gradient block of a walk reads, and those that it writes."""
    reads: set[str] = set()
    writes: set[str] = set()
    for op in walk.ops:
        inner = walk.inner.get(id(op))
        more, changed = ({*op.input_arg_names()}, set()) if inner is None else _touched(inner)
        reads |= more
        writes.update(op.output_arg_names(), changed)
    around = {n for n in reads | writes if not walk.block.has_var(n) and n not in walk.variable_of}
    return reads & around, writes & around


def _gives(gradient: OpDesc, slot: str) -> bool:
    """Whether somebody wants an output of a gradient operator."""
    return any(n != EMPTY for n in gradient.outs.get(slot, []))
