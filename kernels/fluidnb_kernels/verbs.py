"""Operations that kernels emit on either place, so that one kernel serves both: copy, fill, gather, scatter.

On the CPU each emits the numpy call that does it, on a GPU the launch. A part of a tensor is given by a function that
takes an array and returns a view of it: numpy's view of the data on the CPU, a view of the layout on a GPU.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import wide_dtype, writing_as, written_as
from fluidnb_kernels.emit import zeros
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.sequences import emit_put, emit_rows, emit_sum_rows
from fluidnb_kernels.tensor import strided_copy

#: Takes an array, returns a view of it.
View = Callable[[Array], Array]


def _whole(array: Array) -> Array:
    return array


def parts_along(axis: int, sizes: Sequence[int]) -> list[View]:
    """Views of parts that follow each other along a dimension."""
    ends = accumulate(sizes)
    return [itemgetter((*[slice(None)] * axis, slice(end - n, end))) for n, end in zip(sizes, ends, strict=True)]


def copy(b: Binder, out: Array, x: Array, to: View = _whole, of: View = _whole) -> None:
    """Emit ``to(out) = of(x)``; what is read is broadcast to the shape of what is written."""
    if b.on_cuda:
        strided_copy.move(b, out, x, to(strided_copy.layout_of(out)), of(strided_copy.layout_of(x)))
    else:
        b(np.copyto, to(out), of(x))


def fill(b: Binder, out: Array, value: Any = 0) -> None:
    """Emit ``out = value``."""
    if b.on_cuda:
        strided_copy.fill(b, out, value)
    else:
        b(np.copyto, out, value if isinstance(value, np.ndarray) else b.const(value, out.dtype))


@contextmanager
def summing(b: Binder, out: Array) -> Iterator[Array]:
    """A cleared array for sums on a GPU, in the precision in which kernels compute; cast to an output at the end."""
    total = writing_as(b, out, wide_dtype(out.dtype))
    strided_copy.fill(b, total)
    yield total
    written_as(b, out, total)


def write(b: Binder, out: Array, numbers: Array) -> None:
    """Emit ``out = numbers``."""
    if b.on_cuda:
        strided_copy.move(b, out, b.table(numbers))
    else:
        b(np.copyto, out, numbers)


def gather(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[i] = x[rows[i]]``; the rows are known while binding."""
    (row_maps.gather if b.on_cuda else emit_rows)(b, x, rows, out)


def scatter(b: Binder, x: Array, rows: Array, out: Array, clear: bool = False) -> None:
    """Emit ``out[rows[i]] = x[i]``; the rows are known while binding, no number twice."""
    if b.on_cuda:
        if clear:
            row_maps.gather(b, x, row_maps.inverse(rows, len(out)), out)
        else:
            row_maps.place(b, x, row_maps.on_device(b, rows), out)
        return
    if clear:
        zeros(b, out)
    emit_put(b, x, rows, out)


def scatter_add(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[r] = the sum of all x[i] with rows[i] == r``, floats on a GPU: the gradient of `gather`."""
    (row_maps.add_up if b.on_cuda else emit_sum_rows)(b, x, rows, out)
