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
        axis: its number, from the end when negative.

    Returns:
        0 to rank - 1.

    Raises:
        RuleError: there is no such dimension.
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

    Raises:
        RuleError: their shapes differ.
    """
    a, b = c[first].shape, c[second].shape
    c.require(
        agree(a, b), f"Input({first}) and Input({second}) of {c.definition.type} must have the same shape.",
        expected=f"{list(a)}, the shape of {first}", received=f"{list(b)}",
    )  # fmt: skip


def whole_numbers(c: Context, slot: str) -> None:
    """Require that an input holds integers.

    Raises:
        RuleError: it holds something else.
    """
    dtype: Any = np.dtype(c[slot].dtype)
    c.require(
        dtype.kind in "iu", f"Input({slot}) of {c.definition.type} must hold integers.",
        expected="int32 or int64", received=dtype.name, hint='layers.cast(x, "int64") converts it.',
    )  # fmt: skip
