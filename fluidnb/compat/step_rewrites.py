"""Rewrites at the end of an RNN's step, such as sequences used without step_input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fluidnb.layers.control_flow.body import reads_and_writes
from fluidnb.op import get_op
from fluidnb.op.compile_context import infer_compile
from fluidnb.program import Block, Variable
from fluidnb.values.dtypes import VarType
from fluidnb.where import warn


def sequences(body: Block, given: Sequence[Variable]) -> Iterator[Variable]:
    """The sequences of the blocks around that a step reads, or gives as they are.

    Args:
        body: the step block.
        given: what the step gives.

    Yields:
        Each once.

    Example:
        >>> x = fluid.layers.data("x", [3], lod_level=1)
        >>> with fluid.framework.BlockGuard(fluid.default_main_program()) as body:
        ...     y = fluid.layers.relu(x)
        >>> [v.name for v in sequences(body, [y])]
        ['x']
    """
    names = dict.fromkeys([*reads_and_writes(body)[0], *(v.name for v in given if v.block is not body)])
    for name in names:
        x = body.var_recursive(name)
        if x.type == VarType.LOD_TENSOR and x.lod_level and not x.persistable:
            yield x


def say(x: Variable) -> None:
    """Warns that a sequence is interpreted as its value at the current step.

    Args:
        x: the sequence.
    """
    warn(
        f"The step of the RNN uses {x.name}, a sequence, without taking its step: that is done for it. "
        f"Write {x.name}.as_step_input() or rnn.step_input({x.name}), and use what it gives."
    )


def at_front(body: Block, make: Callable[[], Variable]) -> Variable:
    """Append operators as always, then bring them to the front of the step block.

    Args:
        body: the step block.
        make: appends them.

    Returns:
        What ``make`` gives.

    Example:
        >>> x = fluid.layers.ones([1], "float32")
        >>> with fluid.framework.BlockGuard(fluid.default_main_program()) as body:
        ...     y = fluid.layers.relu(x)
        ...     z = at_front(body, lambda: fluid.layers.tanh(x))
        >>> [op.type for op in body.ops]
        ['tanh', 'relu']
    """
    count = len(body.desc.ops)
    made = make()
    for place, op in enumerate(body.desc.remove_op(count, len(body.desc.ops))):
        body.desc.insert_op(place, op)
    return made


def infer_again(body: Block) -> None:
    """Infer shapes and LoD levels anew, now that steps have taken the place of sequences.

    Args:
        body: the step block.

    Example:
        >>> x, y = fluid.layers.data("x", [3], lod_level=1), fluid.layers.data("y", [3])
        >>> with fluid.framework.BlockGuard(fluid.default_main_program()) as body:
        ...     z = fluid.layers.relu(x)
        ...     body.ops[0].rename_input("x", "y"); infer_again(body)
        >>> z.lod_level
        0
    """
    for op in body.desc.ops:
        infer_compile(get_op(op.optype), op, body.desc)
