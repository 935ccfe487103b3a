"""Copies of values that a loop or branch overwrites before its gradient has read them.

The gradient of an iteration sees what the iteration left in the end. Where an operator's gradient needs an earlier
value, the forward block makes a copy of it beside the operator, in a new variable, which is kept like any other
variable of the block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fluidnb.op import GRAD
from fluidnb.program import unique_name
from fluidnb.proto.desc import BlockDesc, OpDesc

if TYPE_CHECKING:
    from fluidnb.backward.walk import Walk

#: What copies are called, after the variable's name.
SAVED = "@SAVED"

#: Slots of gradient operators that name what the block reads under its outer name.
_OUTER = frozenset({"X", "Input", "Cond", "parameters"})


@dataclass(slots=True)
class Copy:
    """A copy to make of a variable's value.

    Args:
        name: the copy's name.
        beside: the operator next to which it is made.
        after: whether it is made after the operator, rather than before.
    """

    name: str
    beside: OpDesc
    after: bool


@dataclass(slots=True)
class Copies:
    """Saved copies of values that the gradients of a block's operators need.

    Args:
        block: the forward block.

    Attributes:
        made: (variable, index of the operator that wrote the value, -1 for none in this block) -> its copy.

    Example:
        >>> from fluidnb.program import Program
        >>> Copies(Program().global_block().desc).made
        {}
    """

    block: BlockDesc
    made: dict[tuple[str, int], Copy] = field(default_factory=dict)

    def of(self, variable: str, version: int, position: int, after: bool) -> str:
        """A copy of a value.

        Args:
            variable: its variable.
            version: index of the operator that wrote it, -1 for none in this block.
            position: index of the operator whose gradient needs it. Later calls are about earlier operators.
            after: whether it is needed as it is after that operator.

        Returns:
            The copy's name, which nothing else in the program has.
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
    """Let the gradient block of a walk, and the blocks inside it, work on a copy of an outer variable.

    Args:
        walk: the walk.
        gradient: the gradient operator that runs the block.
        variable: the outer variable.
        copy: its copy.
    """
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
