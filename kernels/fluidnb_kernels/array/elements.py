"""What several operators do with the elements of an array of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb.values import DeviceContext, LoDTensor, LoDTensorArray, Place
from fluidnb.values.copies import copy_between
from fluidnb_kernels.cuda.upload import uploaded

Array = Any


def array_now(b: Binder) -> LoDTensorArray | None:
    """The array X as a guard must see it: it may have been made since the binder looked.

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


def copied(source: Array, target: Array) -> None:
    """Copy an array to another one, of the host or of a device.

    Args:
        target: one of its shape and dtype, written.

    Example:
        >>> x = np.zeros(2); copied(np.ones(2), x); x
        array([1., 1.])
    """
    if isinstance(source, np.ndarray) and isinstance(target, np.ndarray):
        np.copyto(target, source)
    else:
        copy_between(_kind(source), _kind(target))(source, target)


def _kind(array: Array) -> str:
    return "cpu" if isinstance(array, np.ndarray) else "cuda"


def beside(x: Array, place: Place) -> Array:
    """New memory for a copy of an array.

    Args:
        place: where variables live.

    Returns:
        An array of the same kind, its content undefined.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> beside(np.zeros((2, 3)), CPUPlace()).shape
        (2, 3)
    """
    if _kind(x) == place.kind:
        return DeviceContext.get(place).empty(x.shape, x.dtype)
    return type(x)(x.shape, x.dtype)


def within_reach(x: Array, kernel_reads: Array) -> Array:
    """An element of an array where a kernel can read it.

    Args:
        x: the element; what the host has made lies in its memory.

    Returns:
        The element, or a copy.

    Example:
        >>> x = np.ones(2); within_reach(x, np.zeros(2)) is x
        True
    """
    return uploaded(x, kernel_reads) if _kind(x) != _kind(kernel_reads) else x


def copy_element(array: LoDTensorArray, index: int, out: Array) -> None:
    """Copy an element of an array.

    Args:
        index: from 0.

    Example:
        >>> x = np.zeros(2); copy_element(LoDTensorArray([np.ones(2)]), 0, x); x
        array([1., 1.])
    """
    np.copyto(out, np.asarray(array[index]))
