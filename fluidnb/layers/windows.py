"""Shared helpers of image layers: one number expanded to every axis, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.program import Variable
from fluidnb.values import dtypes


def per_axis(value: int | Sequence[int], rank: int, argument: str, layer: str) -> list[int]:
    """A number for each axis of an image; one alone serves for all.

    Args:
        value: a whole number, or one for each axis.
        rank: how many axes.
        argument: its name, for messages.
        layer: the layer's name.

    Returns:
        A list of ``rank`` numbers.

    Raises:
        OpTypeError: it is something else than whole numbers.
        OpValueError: there are more or fewer of them.

    Example:
        >>> per_axis(3, 2, "stride", "conv2d"), per_axis([np.int32(1), 2], 2, "stride", "conv2d")
        ([3, 3], [1, 2])
    """
    if isinstance(value, int | np.integer):
        values: list[Any] = [value] * rank
    else:
        values = list(value) if _is_row(value) else [None]
    values = [int(v) if isinstance(v, np.integer) else v for v in values]
    if not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        raise OpTypeError(
            f"The {layer}'s {argument} must be whole numbers.",
            expected=f"an int, or {rank} of them", received=f"{value!r} ({type(value).__name__})",
            argument=argument,
        )  # fmt: skip
    if len(values) != rank:
        raise OpValueError(
            f"The {layer}'s {argument} must be a list or tuple of {rank} integers.",
            expected=f"an int, or {rank} of them", received=repr(value), argument=argument,
        )  # fmt: skip
    return values


def _is_row(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def check_image(input: Variable, rank: int, layer: str) -> None:
    """Raise unless a variable is a batch of images with a known number of channels.

    Args:
        input: the variable.
        rank: axes of an image, without batch and channels.
        layer: the layer's name.

    Raises:
        OpTypeError: it is no Variable.
        OpValueError: it has another rank.
    """
    if not isinstance(input, Variable):
        raise OpTypeError(
            f"input of {layer} must be a Variable.", expected="a Variable",
            received=f"{input!r} ({type(input).__name__})", argument="input",
        )  # fmt: skip
    if len(input.shape) != rank + 2:
        axes = ", ".join(["depth", "height", "width"][-rank:])
        raise OpValueError(
            f"The input of {layer} must be a {rank + 2}-D tensor.",
            slots=[("input", input.name, dtypes.dtype_name(input.dtype), input.shape)],
            expected=f"[batch, channels, {axes}]", received=list(input.shape),
            hint='layers.data("img", [channels, height, width]) adds the batch; layers.reshape gives other shapes.',
            argument="input",
        )  # fmt: skip


def check_switch(value: object, layer: str) -> None:
    """Raise unless ``use_cudnn`` is True or False.

    Args:
        value: what was given.
        layer: the layer's name.

    Raises:
        OpTypeError: it is something else.
    """
    if not isinstance(value, bool):
        raise OpTypeError(f"use_cudnn of {layer} should be True or False.", received=repr(value))
