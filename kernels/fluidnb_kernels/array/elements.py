"""What several operators do with the elements of an array of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb.values import LoDTensor, LoDTensorArray

Array = Any


def array_now(b: Binder) -> LoDTensorArray | None:
    """The array X as a guard must see it: it may have been made since the binder looked.

    Args:
        b: the binder.

    Returns:
        The array, or None where there is none yet.

    Raises:
        RuleError: it is something else.
    """
    array: LoDTensorArray | None = b["X"]
    if array is None:
        array = b.scope.cell(b.inputs["X"][0])[0].value
    b.require(
        array is None or isinstance(array, LoDTensorArray),
        f"Input(X) of {b.definition.type} must be an array of tensors.",
        expected="a LoDTensorArray", received=type(array).__name__, hint="array_write makes one.",
    )  # fmt: skip
    return array


def shapes_of(b: Binder) -> Any:
    """The guard of operators that read the whole array X: shape, dtype and LoD of each of its elements.

    Args:
        b: the binder.

    Returns:
        A row for each element, None for one that was never written; None where there is no array.
    """
    array = array_now(b)
    if array is None:
        return None
    return tuple((t.array.shape, t.array.dtype, t.lod_) if t.array is not None else None for t in array)


def fill(array: LoDTensorArray, tensors: list[LoDTensor]) -> None:
    """Let an array hold these tensors and no others.

    Example:
        >>> a = LoDTensorArray([np.ones(3)]); fill(a, [LoDTensor(np.ones(2))]); a
        LoDTensorArray([LoDTensor(shape=[2], dtype=float64, place=CPUPlace)])
    """
    array[:] = tensors


def copy_element(array: LoDTensorArray, index: int, out: Array) -> None:
    """Copy an element of an array.

    Args:
        array: the array.
        index: from 0.
        out: of the element's shape, written.

    Example:
        >>> x = np.zeros(2); copy_element(LoDTensorArray([np.ones(2)]), 0, x); x
        array([1., 1.])
    """
    np.copyto(out, np.asarray(array[index]))
