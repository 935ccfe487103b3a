"""Copies of values that a loop or branch overwrites before its gradient has read them.

The gradient of an iteration sees the final values of the iteration. Where an operator's gradient needs an earlier
value, the forward block copies it beside the operator, into a new variable of the block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fluidnb.op import GRAD
from fluidnb.program import unique_name
from fluidnb.program.constants import SAVED
from fluidnb.proto.desc import BlockDesc, OpDesc

if TYPE_CHECKING:
    from fluidnb.backward.walk import Walk

#: Slots of gradient operators that name what the block reads under its outer name.
_OUTER = frozenset({"X", "Input", "Cond", "parameters"})


@dataclass(slots=True)
class Copy:
    """A copy to make of a variable's value."""

    name: str  # the copy's name
    beside: OpDesc  # the operator next to which it is made
    after: bool  # whether it is made after the operator, rather than before


@dataclass(slots=True)
class Copies:
    """Saved copies of values that the gradients of a block's operators need."""

    block: BlockDesc  # the forward block
    # (variable, index of the operator that wrote the value, -1 for none in this block) -> its copy
    made: dict[tuple[str, int], Copy] = field(default_factory=dict)

    def of(self, variable: str, version: int, position: int, after: bool) -> str:
        """The name of a copy of a value.

        Args:
            version: index of the operator that wrote it, -1 for none in this block.
            position: index of the operator whose gradient needs it. Later calls are about earlier operators.
        """
        known = self.made.get((variable, version))
        name = self._free(variable + SAVED) if known is None else known.name
        self.made[variable, version] = Copy(name, self.block.ops[position], after)
        return name

    def _free(self, wish: str) -> str:
        program, name = self.block.program, wish
        taken = {copy.name for copy in self.made.values()}
        assert program is not None
        while name in taken or any(b.has_var(name) for b in program.blocks):
            name = unique_name.generate(wish)
        return name


def use_copy(walk: Walk, gradient: OpDesc, variable: str, copy: str) -> None:
    """Replace an outer variable by a copy in the gradient block of a walk, and in the blocks inside it."""
    if walk.block.has_var(variable):
        return
    for slot, names in gradient.ins.items():
        if slot in _OUTER:
            gradient.set_input(slot, [copy if n == variable else n for n in names])
    renamed = {variable: copy}
    if variable in walk.finished:  # the operator finds the gradient by the variable's name
        walk.finished.remove(variable)
        walk.finished.add(copy)
        renamed[variable + GRAD] = copy + GRAD
        walk.variable_of[copy + GRAD] = walk.variable_of.pop(variable + GRAD)
    walk.replaced.add(variable)
    for op in walk.ops:
        inner = walk.inner.get(id(op))
        if inner is not None:
            use_copy(inner, op, variable, copy)
        for slot, names in op.ins.items():
            if inner is None or slot not in _OUTER:
                op.set_input(slot, [renamed.get(n, n) for n in names])
        for slot, names in op.outs.items():
            op.set_output(slot, [renamed.get(n, n) for n in names])
