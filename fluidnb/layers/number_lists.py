"""Checks arguments of layers that are lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from fluidnb.errors import OpTypeError, OpValueError


def numbers(value: Any, argument: str, layer: str, *, count: int | None = None, one: bool = False) -> list[float]:
    """Gives an argument as a list of floats.

    Args:
        value: a list or tuple of numbers.
        argument: its name, for messages.
        layer: the layer's name.
        count: how many there must be; None for any number.
        one: whether a single number is a list of one.

    Returns:
        Floats.

    Raises:
        OpTypeError: it is something else than numbers.
        OpValueError: there are more or fewer of them.

    Example:
        >>> numbers((1, 2.5), "steps", "prior_box"), numbers(4, "min_sizes", "prior_box", one=True)
        ([1.0, 2.5], [4.0])
    """
    values = [value] if one and isinstance(value, Real) else value
    expected = f"{'a number, or ' * one}a list of {'' if count is None else f'{count} '}numbers"
    if not isinstance(values, Sequence) or not all(isinstance(v, Real) for v in values):
        raise OpTypeError(
            f"{argument} of {layer} must be numbers.", expected=expected,
            received=f"{value!r} ({type(value).__name__})",
        )  # fmt: skip
    if count is not None and len(values) != count:
        raise OpValueError(
            f"{argument} of {layer} must be {count} numbers.", expected=expected, received=repr(value)
        )  # fmt: skip
    return [float(v) for v in values]
