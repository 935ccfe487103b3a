"""Methods that classes have while Paddle's names are installed: words of the design documents and of version 0.11."""

from collections.abc import Callable, Iterable
from typing import Any

from fluidnb.backward import append_backward as _append_backward
from fluidnb.compat import pd
from fluidnb.op import GRAD
from fluidnb.optimizer.base import Optimizer
from fluidnb.program import Program, Variable


def append_backward(
    self: Program, target: Variable, no_grad_set: Iterable[Variable | str] | None = None
) -> dict[str, tuple[str, int]]:
    """Append the operators that compute the gradient of a variable; `fluid.backward.append_backward`.

    Returns:
        Name of a variable -> the name of its gradient, and the index of the block that has it.
    """
    _append_backward(target, no_grad_set=no_grad_set)
    return {
        name.removesuffix(GRAD): (name, block.idx)
        for block in self.desc.blocks
        for name in block.vars
        if name.endswith(GRAD)
    }


#: (class, name, method)
METHODS: tuple[tuple[type, str, Callable[..., Any]], ...] = (
    (Variable, "as_step_input", pd.as_step_input),
    (Program, "append_backward", append_backward),
    (Optimizer, "_global_learning_rate", Optimizer.global_learning_rate),
)
