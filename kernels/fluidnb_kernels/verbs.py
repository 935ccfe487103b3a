"""Operations that kernels emit on either place, so that one kernel serves both: copy, fill, gather, scatter.

On the CPU each emits the numpy call that does it, on a GPU the launch. A part of a tensor is given by a function that
takes an array and returns a view of it: numpy's view of the data on the CPU, a view of the layout on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.emit import zeros
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.sequences import emit_put, emit_rows, emit_sum_rows
from fluidnb_kernels.tensor import strided_copy

Array = Any
#: Takes an array, returns a view of it.
View = Callable[[Array], Array]


def on_cuda(b: Binder) -> bool:
    """Whether the kernel that is bound computes on a GPU."""
    return b.kernel_place == "cuda"


def _whole(array: Array) -> Array:
    return array


def parts_along(axis: int, sizes: Sequence[int]) -> list[View]:
    """Views of parts that follow each other along a dimension.

    Args:
        sizes: how many elements each has along it.

    Example:
        >>> [part(np.arange(5)).tolist() for part in parts_along(0, [2, 3])]
        [[0, 1], [2, 3, 4]]
    """
    ends = accumulate(sizes)
    return [itemgetter((*[slice(None)] * axis, slice(end - n, end))) for n, end in zip(sizes, ends, strict=True)]


def copy(b: Binder, out: Array, x: Array, to: View = _whole, of: View = _whole) -> None:
    """Emit ``to(out) = of(x)``; what is read is broadcast to the shape of what is written.

    Args:
        out: on a GPU contiguous and of the dtype of ``x``.
    """
    if on_cuda(b):
        strided_copy.move(b, out, x, to(strided_copy.lay(out)), of(strided_copy.lay(x)))
    else:
        b(np.copyto, to(out), of(x))


def fill(b: Binder, out: Array, value: Any = 0) -> None:
    """Emit ``out = value``.

    Args:
        value: a number or an array of one element, known while binding.
    """
    if on_cuda(b):
        strided_copy.fill(b, out, value)
    else:
        b(np.copyto, out, value if isinstance(value, np.ndarray) else b.const(value, out.dtype))


def write(b: Binder, out: Array, numbers: Array) -> None:
    """Emit ``out = numbers``.

    Args:
        numbers: an array of the host, known while binding.
    """
    if on_cuda(b):
        strided_copy.move(b, out, b.table(numbers))
    else:
        b(np.copyto, out, numbers)


def gather(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[i] = x[rows[i]]``.

    Args:
        x: [n, …].
        rows: int [m], known while binding.
        out: [m, …], written.
    """
    (row_maps.gather if on_cuda(b) else emit_rows)(b, x, rows, out)


def scatter(b: Binder, x: Array, rows: Array, out: Array, clear: bool = False) -> None:
    """Emit ``out[rows[i]] = x[i]``.

    Args:
        x: [m, …].
        rows: int [m], known while binding; no number twice.
        out: [n, …], written in these rows.
        clear: whether the other rows become zeros.
    """
    if on_cuda(b):
        if clear:
            row_maps.gather(b, x, row_maps.inverse(rows, len(out)), out)
        else:
            row_maps.place(b, x, row_maps.on_device(b, rows), out)
        return
    if clear:
        zeros(b, out)
    emit_put(b, x, rows, out)


def scatter_add(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[r] = the sum of all x[i] with rows[i] == r``: the gradient of `gather`.

    Args:
        x: [m, …], floats on a GPU.
        rows: int [m], known while binding.
        out: [n, …], written.
    """
    (row_maps.add_up if on_cuda(b) else emit_sum_rows)(b, x, rows, out)
