"""Whether a step wrote a variable."""

from __future__ import annotations

from typing import Any

from fluidnb.runtime.interpreter.interpreter import Undo
from fluidnb.values.tensor import LoDTensor
from fluidnb.values.variable import Variable


def wrote(undo: Undo, variable: Variable) -> bool:
    """Whether a step gave a variable another value; called directly after the step.

    Args:
        undo: what the step changed.
        variable: the variable.

    Returns:
        Whether its memory was written, or it got other memory, another LoD or another object. An operator that only
        has the variable as an output, as `while` when it begins, does not count.

    Example:
        >>> from fluidnb.values.variable import Variable
        >>> x = Variable("x", 1); wrote(Undo((), [(x, 1, None, ())], [], []), x)
        False
        >>> wrote(Undo((), [(x, None, None, ())], [], []), x)
        True
    """
    now: Any = variable.value
    array = now.array if type(now) is LoDTensor else None
    if array is not None and any(buffer is array for buffer, _ in undo.arrays):
        return True
    if isinstance(now, list) and any(held is now and held != old for held, old in undo.lists):
        return True
    for row, value, old, lod in undo.cells:
        if row is variable and (value is not now or (array is not old if type(value) is LoDTensor else False)):
            return True
        if row is variable and type(now) is LoDTensor and now.lod_ != lod:
            return True
    return False
