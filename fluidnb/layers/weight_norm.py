"""Parameters whose length and direction are trained apart."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.layers.activation import sqrt, square
from fluidnb.layers.creation import assign
from fluidnb.layers.math import elementwise_div, elementwise_mul, reduce_sum
from fluidnb.layers.shape import reshape
from fluidnb.param_attr import ParamAttr, WeightNormParamAttr
from fluidnb.program import Block, Parameter, Variable, program_guard

#: ``make(attr, shape, initializer)`` creates a parameter; without an initializer it takes the one of its description.
Make = Callable[[ParamAttr, Sequence[int], Any], Parameter]


def normalized(attr: WeightNormParamAttr, shape: Sequence[int], make: Make) -> Variable:
    """A weight ``g · v / |v|`` from two parameters: direction ``name_v`` and length ``name_g``.

    The initial length is that of the direction, so that the initial weight is the initializer's.
    """
    axis = attr.dim
    if axis is not None and not isinstance(axis, int | np.integer):
        raise OpTypeError("dim of a WeightNormParamAttr is an axis.", expected="an int or None", received=typed(axis))
    if axis is not None and not -len(shape) <= axis < len(shape):
        raise OpValueError(
            "A weight of this shape has no such axis.", expected=f"dim from 0 to {len(shape) - 1}, or None",
            received=f"dim={axis} for shape {list(shape)}",
        )  # fmt: skip
    axis = None if axis is None else axis % len(shape)
    lengths = [1] if axis is None else [n if i == axis else 1 for i, n in enumerate(shape)]
    direction = make(attr.part("_v"), shape, None)
    length = make(attr.part("_g"), lengths, _Length(direction.name, axis))
    scale = elementwise_div(length, _length(direction, axis))
    if axis is None:
        return elementwise_mul(direction, scale)
    return elementwise_mul(direction, reshape(scale, [shape[axis]]), axis=axis)


def _length(v: Variable, axis: int | None) -> Variable:
    """The length of a variable along all axes but one."""
    others = [i for i in range(len(v.shape)) if i != axis]
    return sqrt(reduce_sum(square(v), dim=others, keep_dim=axis is not None))


class _Length:
    """Fills the length with that of the direction, in the startup program."""

    def __init__(self, direction: str, axis: int | None) -> None:
        self._direction, self._axis = direction, axis

    def __call__(self, var: Variable, block: Block) -> Any:
        with program_guard(block.program):
            return assign(_length(block.var(self._direction), self._axis), output=var)
