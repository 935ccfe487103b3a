"""Checks of the variables given to loops, branches and recurrent networks."""

from __future__ import annotations

from typing import Annotated

from fluidnb.arguments import Rule
from fluidnb.errors import Operand, OpTypeError, OpValueError
from fluidnb.program import Block, Variable
from fluidnb.values.dtypes import dtype_name

#: What decides a loop or a branch.
Condition = Annotated[Variable, Rule("a Variable of bool", hint="layers.less_than() and its like make one.")]


def operand(slot: str, x: Variable) -> Operand:
    """A variable as an operand of a message.

    Args:
        slot: the argument that it is.
        x: the variable.

    Example:
        >>> operand("x", fluid.layers.ones([2], "float32"))
        ('x', 'fill_constant_0.tmp_0', 'float32', (2,))
    """
    return slot, x.name, dtype_name(x.dtype), x.shape


def check_is_variable(value: object, summary: str) -> None:
    """Raise unless a value is a Variable.

    Args:
        value: the value.
        summary: what to say.

    Raises:
        OpTypeError: it is something else.

    Example:
        >>> check_is_variable(3, "step input takes a Variable")
        Traceback (most recent call last):
        fluidnb.errors.OpTypeError: step input takes a Variable
          expected: a Variable
          received: 3 (int)
          hint:     layers.fill_constant() makes a variable that holds a number, layers.data() one to feed.
    """
    if not isinstance(value, Variable):
        raise OpTypeError(
            summary, expected="a Variable", received=f"{value!r} ({type(value).__name__})"[:200],
            hint="layers.fill_constant() makes a variable that holds a number, layers.data() one to feed.",
        )  # fmt: skip


def check_made_outside(home: Block, x: Variable, slot: str, layer: str) -> None:
    """Raise unless a variable is seen by the block around a layer's block.

    Args:
        home: the block around.
        x: the variable.
        slot: the argument that it is.
        layer: the method that takes it.

    Raises:
        OpValueError: it is made inside, or belongs to another program.
    """
    if home.find_var_recursive(x.name) is not x:
        raise OpValueError(
            f"{layer} takes what is made outside of the block.", slots=[operand(slot, x)],
            expected=f"a variable that block {home.idx} sees", received=f"a variable of block {x.block.idx}",
            hint=f"make it before the block, or use {x.name} as it is.",
        )  # fmt: skip


def check_keeps_shape(memory: Variable, new: Variable, slots: tuple[str, str]) -> None:
    """Raise unless the new value of a memory looks like the old one.

    Args:
        memory: the memory.
        new: what it becomes.
        slots: the arguments that they are.

    Raises:
        OpValueError: dtype or a known size differs.
    """
    fits = memory.dtype == new.dtype and len(memory.shape) == len(new.shape)
    if not fits or any(-1 not in ab and ab[0] != ab[1] for ab in zip(memory.shape, new.shape, strict=True)):
        raise OpValueError(
            "A memory keeps its shape and dtype from step to step.",
            slots=[operand(slots[0], memory), operand(slots[1], new)],
            expected=f"{dtype_name(memory.dtype)}{list(memory.shape)}, as it starts with",
            received=f"{dtype_name(new.dtype)}{list(new.shape)}",
            hint="give memory() the shape of the new value, or the new value that of the memory.",
        )  # fmt: skip
