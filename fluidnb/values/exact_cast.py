"""Numbers that a user gives for a variable, as an array of its dtype; what it does not hold is refused."""

from typing import Any

import numpy as np

from fluidnb.arguments import shown
from fluidnb.errors import OpTypeError, OpValueError


def numbers(name: str, value: Any) -> np.ndarray[Any, Any]:
    """A copy of the value for a variable as an array of numbers."""
    try:
        array = np.array(value)
    except (TypeError, ValueError, OverflowError):  # lists of unequal lengths, an int above all floats in a list
        array = np.array(None)
    if array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16":
        raise OpTypeError(
            f'"{name}" cannot hold this value.', expected="a number, or an array of numbers", received=shown(value),
            hint="nested lists must be of equal lengths." if isinstance(value, list | tuple) else None,
        )  # fmt: skip
    return array


def exact_cast(name: str, array: np.ndarray[Any, Any], like: Any) -> np.ndarray[Any, Any]:
    """Numbers with the shape and dtype of a variable's array; floats are rounded, other changes are refused."""
    dtype, shape = like.dtype, tuple(like.shape)
    holds = array.dtype.kind != "c" or dtype.kind == "c"
    with np.errstate(all="ignore"):
        cast = array.astype(dtype) if holds else array
        if dtype.kind in "biu":
            holds = holds and bool((cast == array).all())
        elif holds:
            holds = bool((np.isfinite(cast) | ~np.isfinite(array)).all())
    if not holds:
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        raise OpTypeError(
            f'"{name}" cannot hold these values.', slots=[("", name, str(dtype), shape)],
            expected=f"whole numbers from {limits.min} to {limits.max}" if limits else f"numbers of {dtype}",
            received=shown(array.tolist()),
            hint=f'np.array(...).astype("{dtype}") converts them, to other numbers.',
        )  # fmt: skip
    try:
        return np.broadcast_to(cast, shape)
    except ValueError:
        raise OpValueError(
            f'"{name}" has another shape.', slots=[("", name, str(dtype), shape)],
            expected=f"a shape that broadcasts to {list(shape)}", received=f"{list(array.shape)}",
        ) from None  # fmt: skip
