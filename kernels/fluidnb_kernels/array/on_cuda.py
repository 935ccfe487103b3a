"""Arrays of tensors on a GPU: launches that are made in the calls of a run, since elements are known only then."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.values import LoDTensor, LoDTensorArray, Place
from fluidnb_kernels.array.elements import beside, copied, within_reach
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.grid import elementwise
from fluidnb_kernels.cuda.now import NOW
from fluidnb_kernels.elementwise.on_cuda import CUDA
from fluidnb_kernels.sequence import maps
from fluidnb_kernels.tensor.moves import move

Array = Any


def add_to(total: Array, x: Array) -> None:
    """Add an array to another one, of the host or of a device.

    Args:
        x: of its shape and dtype.

    Example:
        >>> total = np.ones(2); add_to(total, np.ones(2)); total
        array([2., 2.])
    """
    if isinstance(total, np.ndarray):
        np.add(total, x, total)
    else:
        elementwise(NOW, CUDA, f"binary<f::add, {ctype(total.dtype)}", total, within_reach(x, total), total)


def add_arrays_on_cuda(out: LoDTensorArray, arrays: list[LoDTensorArray], place: Place) -> None:
    """Sum arrays of tensors element by element; one that has no value at an index counts as zero there.

    Args:
        out: the result; its elements are made anew.
        place: where variables live.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> a, b, c = (LoDTensorArray([np.ones(2)]) for _ in range(3))
        >>> add_arrays_on_cuda(c, [a, b], CPUPlace()); np.asarray(c[0])
        array([2., 2.])
    """
    sums: list[LoDTensor] = []
    for i in range(max(map(len, arrays))):
        there = [a[i] for a in arrays if i < len(a) and a[i].array is not None]
        if not there:
            sums.append(LoDTensor())
            continue
        parts = [t.array for t in there]
        total = beside(next((x for x in parts if not isinstance(x, np.ndarray)), parts[0]), place)
        copied(parts[0], total)
        for part in parts[1:]:
            add_to(total, part)
        sums.append(LoDTensor(total, there[0].lod_, place))
    out[:] = sums


def copy_array_on_cuda(source: LoDTensorArray, target: LoDTensorArray, place: Place) -> None:
    """Make one array of tensors a copy of another.

    Args:
        target: changed; its elements are made anew.
        place: where variables live.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> a, b = LoDTensorArray([np.ones(2)]), LoDTensorArray(); copy_array_on_cuda(a, b, CPUPlace()); len(b)
        1
    """
    made = [LoDTensor(None if t.array is None else beside(t.array, place), t.lod_, place) for t in source]
    for old, new in zip(source, made, strict=True):
        if old.array is not None:
            copied(old.array, new.array)
    target[:] = made


def put_rows(array: LoDTensorArray, step: int, rows: Array, out: Array) -> None:
    """Copy an element's rows to where they belong.

    Args:
        rows: int64, where each of its rows belongs; where kernels can read them.
    """
    maps.place(NOW, within_reach(array[step].array, out), rows, out)


def put_part(array: LoDTensorArray, index: int, part: Array, out: Array) -> None:
    """Copy an element to a part of a tensor.

    Args:
        part: which part, a view of ``lay(out)``.
    """
    move(NOW, out, within_reach(array[index].array, out), to=part)
