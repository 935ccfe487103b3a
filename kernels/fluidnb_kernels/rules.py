"""Checks that the shape rules of many operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.op import Context

Shape = Sequence[int]


def one_axis(c: Context, axis: int, rank: int, attr: str = "axis") -> int:
    """A dimension that an attribute names, counted from the front.

    Args:
        c: the context.
        axis: its number, from the end when negative.
        rank: how many dimensions there are.
        attr: the attribute, for the message.

    Returns:
        0 to rank - 1.

    Raises:
        RuleError: there is no such dimension.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("stack", {"X": [np.zeros(2), np.ones(2)]}, {"axis": -1})["Y"].shape
        (2, 2)
    """
    c.require(
        -rank <= axis < rank, f"Attr({attr}) of {c.definition.type} must name a dimension.",
        expected=f"{-rank} to {rank - 1}", received=axis,
    )  # fmt: skip
    return axis % rank


def agree(a: Shape, b: Shape) -> bool:
    """Whether two shapes can be the same; -1 fits anything.

    Example:
        >>> agree((-1, 3), (2, 3)), agree((2, 3), (3, 2))
        (True, False)
    """
    return len(a) == len(b) and all(m == n or m < 0 or n < 0 for m, n in zip(a, b, strict=True))


def joint(a: Shape, b: Shape) -> tuple[int, ...]:
    """What two shapes that agree say together.

    Example:
        >>> joint((-1, 3), (2, -1))
        (2, 3)
    """
    return tuple(max(m, n) for m, n in zip(a, b, strict=True))


def same_shape(c: Context, first: str, second: str) -> None:
    """Require that two inputs have the same shape.

    Args:
        c: the context.
        first: a slot.
        second: another slot.

    Raises:
        RuleError: their shapes differ.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("minus", {"X": [3.0], "Y": [1.0]})["Out"]
        array([2.])
    """
    a, b = c[first].shape, c[second].shape
    c.require(
        agree(a, b), f"Input({first}) and Input({second}) of {c.definition.type} must have the same shape.",
        expected=f"{list(a)}, the shape of {first}", received=f"{list(b)}",
    )  # fmt: skip


def whole_numbers(c: Context, slot: str) -> None:
    """Require that an input holds integers.

    Args:
        c: the context.
        slot: the slot.

    Raises:
        RuleError: it holds something else.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("gather", {"X": [5.0, 7.0], "Index": np.array([1])})["Out"]
        array([7.])
    """
    dtype: Any = np.dtype(c[slot].dtype)
    c.require(
        dtype.kind in "iu", f"Input({slot}) of {c.definition.type} must hold integers.",
        expected="int32 or int64", received=dtype.name, hint='layers.cast(x, "int64") converts it.',
    )  # fmt: skip
