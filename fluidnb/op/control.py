"""Operators that run blocks. Their kernel gives an object; both walkers drive the same one.

All state between iterations is the number ``k`` and the variables, so a debugger can leave an iteration, come back to
it and go the other way.
"""

from __future__ import annotations

from typing import Any


class Control:
    """The base of what the kernel of a control operator returns.

    Args:
        b: the binder of the operator; its attribute ``sub_block`` names the block to run.
        steps: the list to which finished iterations are appended (the value of StepScopes).

    Attributes:
        scope: the scope in which the operator stands; parent of the scopes of its iterations.
        block_index: index of the block that it runs.
        walker: who drives it, set by the walker.
        roots: what the walker keeps of the block: id of the scope around it -> bound body.
    """

    def __init__(self, b: Any, steps: list[Any]) -> None:
        self.scope = b.scope
        self.block_index: int = b.attr("sub_block")
        self.steps = steps
        self.walker: Any = None
        self.roots: dict[int, Any] = {}

    def begin(self) -> None:
        """Called once before the first iteration."""
        self.steps.clear()

    def enter(self, k: int) -> Any:
        """The scope around iteration ``k``, or None when there is no such iteration."""
        raise NotImplementedError

    def leave(self, k: int, step: Any) -> None:
        """Iteration ``k`` is over; ``step`` is its scope."""
        self.steps.append(step)


class Loop(Control):
    """Runs its block while a condition holds.

    Args:
        b: the binder.
        steps: see `Control`.
        condition: the runtime variable that holds a bool of one element.
    """

    def __init__(self, b: Any, steps: list[Any], condition: Any) -> None:
        super().__init__(b, steps)
        self.condition = condition

    def more(self) -> bool:
        """Whether the condition holds now."""
        return bool(self.condition.value.array.item())

    def enter(self, k: int) -> Any:
        return self.scope if self.more() else None


class Branch(Control):
    """Runs its block once, or not at all.

    Args:
        b: the binder.
        steps: see `Control`.
        taken: called when the operator begins; says whether to run the block.
    """

    def __init__(self, b: Any, steps: list[Any], taken: Any) -> None:
        super().__init__(b, steps)
        self.taken = taken

    def enter(self, k: int) -> Any:
        return self.scope if k == 0 and self.taken() else None
