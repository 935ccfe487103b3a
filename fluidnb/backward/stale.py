"""Values that a gradient needs but that a later operator has overwritten.

Fluid computes such gradients from the new value without a word. Here a counter is counted down, inside loops and
branches the forward block copies the value, a parameter that an optimizer has changed gets a warning, and all else is
an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fluidnb.backward.blocks import KEPT, counted, restored, undo
from fluidnb.backward.saved import use_copy
from fluidnb.errors import Operand, OpValueError
from fluidnb.op import EMPTY, get_op
from fluidnb.program.constants import SHAPES_ONLY, OpRole
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.utils.source_location import warn
from fluidnb.values import dtypes
from fluidnb.values.dtypes import VarType

if TYPE_CHECKING:
    from fluidnb.backward.walk import Walk

#: Gradients of products: the value of one factor matters only to the gradient of the other.
CROSSED = frozenset({"elementwise_mul_grad", "matmul_grad", "mul_grad"})


class Freshness:
    """The writers of every variable of a block."""

    def __init__(self, block: BlockDesc) -> None:
        self.block = block
        self.writers: dict[str, list[int]] = {}
        for position, op in enumerate(block.ops):
            for name in dict.fromkeys(op.output_arg_names()):
                self.writers.setdefault(name, []).append(position)
        for position, op in enumerate(block.ops):
            self._forget_counting(position, op)

    def _forget_counting(self, position: int, op: OpDesc) -> None:
        """Treats variables whose counting an earlier backward undid and restored as not written."""
        if op.optype != "assign" or not op.attrs.get("op_role", 0) & OpRole.Backward:
            return
        (name,), (copy,) = op.outs["Out"], op.ins["X"]
        if copy.startswith(name + KEPT):
            start = self.writers[copy][-1]
            self.writers[name] = [w for w in self.writers[name] if not start < w <= position]

    def check(self, position: int, gradient: OpDesc, walk: Walk) -> None:
        """Ensure that a gradient operator reads the values of its forward operator."""
        op = self.block.ops[position]
        for slot, name, after in list(self._needs(position, op, gradient, walk)):
            last = self._overwritten(walk, name, after)
            if last is None and not self._counts_on_a_copy(walk, gradient, name):
                continue
            if walk.nested and self._is_tensor(name):
                versions = [w for w in self.writers.get(name, ()) if w <= after]
                copy = walk.copies.of(name, versions[-1] if versions else -1, position, after == position)
                inner = walk.inner.get(id(gradient))
                if inner is None:
                    gradient.set_input(slot, [copy if n == name else n for n in gradient.ins[slot]])
                else:
                    use_copy(inner, gradient, name, copy)
            elif last is not None:
                self._report(name, slot, position, op, last)

    def _overwritten(self, walk: Walk, name: str, after: int) -> int | None:
        """The last operator that overwrites a variable after a position; counters undone by backward are ignored."""
        counts = not walk.nested or self.block.has_var(name) or counted(self.block, name)
        for writer in reversed(self.writers.get(name, ())):
            if writer <= after:
                break
            if not restored(walk, self.block.ops[writer], name) and not (counts and undo(walk, writer, name)):
                return writer
        return None

    def _counts_on_a_copy(self, walk: Walk, gradient: OpDesc, name: str) -> bool:
        """Whether a gradient block counts a variable down that this block, in a loop, sets in other ways too."""
        inner = walk.inner.get(id(gradient))
        if inner is None or not walk.nested or self.block.has_var(name) or counted(self.block, name):
            return False
        return name in _touched(inner)[1]

    def _is_tensor(self, name: str) -> bool:
        var = self.block.find_var_recursive(name)
        return var is not None and var.type() == VarType.LOD_TENSOR

    def _needs(self, position: int, op: OpDesc, gradient: OpDesc, walk: Walk) -> Iterable[tuple[str, str, int]]:
        """(slot, variable, the last position that may write it) of the forward values that a gradient reads."""
        inner = walk.inner.get(id(gradient))
        if inner is not None:  # what an iteration leaves of its own, and of what it changes outside, is kept
            reads, writes = _touched(inner)
            changed = set(op.output_arg_names())
            if walk.nested:  # the shape of the sum over iterations
                reads |= inner.finished
            return [("X", n, position) for n in sorted(reads) if n not in changed or n in writes]
        if gradient.optype in SHAPES_ONLY and not walk.nested:  # in a loop, the next value may have another shape
            return []
        definition = get_op(op.optype)
        outs = set(op.output_arg_names()).difference(op.input_arg_names())  # py_func reads both in one slot
        needs = []
        for slot, names in gradient.ins.items():
            if gradient.optype in CROSSED and not _gives(gradient, "Y@GRAD" if slot == "X" else "X@GRAD"):
                continue
            shape_of_an_element = slot == "X_W" and walk.nested
            if slot not in definition.inputs and slot not in definition.outputs and not shape_of_an_element:
                continue
            # An output is as it should be after its own operator, an input was read before it.
            for n in names:
                made = slot in definition.outputs or n in outs
                needs += [(slot, n, position if made else position - 1)] if n != EMPTY else []
        return needs

    def _report(self, name: str, slot: str, position: int, op: OpDesc, last: int) -> None:
        var = self.block.find_var_recursive(name)
        if var is None or not self._is_tensor(name):  # an array keeps what was written at other places
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
            received=writer.label(), hint="write the later result to a new variable (in_place=False, or no out=).",
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
    """Whether an output of a gradient operator is wanted."""
    return any(n != EMPTY for n in gradient.outs.get(slot, []))
