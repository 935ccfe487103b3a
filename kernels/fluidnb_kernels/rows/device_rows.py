"""SelectedRows on a GPU: values stay on the device, numbers of rows on the host.

How many rows there are is known when a call is made, so calls take the object itself, look inside and launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb.values import SelectedRows
from fluidnb.values.copies import copy_between
from fluidnb_kernels.cuda import CTYPES, Function, Source, ctype
from fluidnb_kernels.cuda.grid import BLOCKS, THREADS
from fluidnb_kernels.cuda.immediate import NOW
from fluidnb_kernels.cuda.upload import room_beside, uploaded
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math.same_shape import added, launch
from fluidnb_kernels.rows.values import dtype_of, fill, put_rows, shape_of, value_array

Array = Any


def _kernels() -> Iterator[str]:
    for dtype in ("float16", "bfloat16", "float32", "float64", "int32", "int64"):
        yield from (f"merged<{CTYPES[dtype]}>", f"add_rows<{CTYPES[dtype]}>")
    for dtype in FLOATS:
        yield from (f"but_padding<{CTYPES[dtype]}, {CTYPES[ids]}>" for ids in ("int32", "int64"))


CUDA = Source(__file__, "rows.cu", _kernels)


def _sorted(ids: Array) -> tuple[Array, Array, Array]:
    """Rising row numbers, each once; in which order values are taken; where those of each row begin, and the end."""
    order = ids.argsort(kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[starts], order, np.append(starts, len(order))


def merge_on_device(source: SelectedRows, target: SelectedRows) -> None:
    """Fill SelectedRows with those of another, each row once; the numbers of rows are sorted on the host.

    Example:
        >>> from fluidnb.values import LoDTensor
        >>> a, b = SelectedRows([1, 1], 2, LoDTensor(np.ones((2, 1)))), SelectedRows((), 2); merge_on_device(a, b)
        >>> b.rows(), b.value.array.tolist()
        ([1], [[2.0]])
    """
    _merge(source.rows_, value_array(source), target)


def _merge(ids: Array, values: Array, target: SelectedRows) -> None:
    """Fill SelectedRows with rows, those of one number added up."""
    rows, order, ends = _sorted(ids)
    sums = room_beside(values, (len(rows), *values.shape[1:]), values.dtype)
    if sums.size:
        numbers = [uploaded(n, values) for n in (order, ends)]
        sizes = np.int64(sums.size // len(rows)), np.int64(len(rows))
        grid = (min(BLOCKS, len(rows)),)
        CUDA[f"merged<{ctype(values.dtype)}>"](grid, (THREADS,), 0, *numbers, values, sums, *sizes)
    fill(target, rows, sums)


def over_rows(function: Function, grad: SelectedRows, *args: Any) -> None:
    """Launch a kernel with a block for each row that SelectedRows holds.

    Args:
        grad: the rows, whose numbers are sorted here; one that comes twice is summed in the order of its values.

    Example:
        >>> from fluidnb.values import LoDTensor
        >>> x, g = np.zeros((3, 2)), SelectedRows([1, 0, 1], 3, LoDTensor(np.ones((3, 2))))
        >>> over_rows(CUDA["add_rows<double>"], g, x); x
        array([[1., 1.],
               [2., 2.],
               [0., 0.]])
    """
    values = value_array(grad)
    if values.size == 0:
        return
    numbers = [uploaded(n, values) for n in _sorted(grad.rows_)]
    width = np.int64(values.size // len(values))
    function((numbers[0].size,), (THREADS,), 0, *numbers, values, *args, width)


def add_on_device(total: Array, source: SelectedRows) -> None:
    """Add SelectedRows to a tensor.

    Example:
        >>> from fluidnb.values import LoDTensor
        >>> x = np.zeros((2, 1)); add_on_device(x, SelectedRows([1], 2, LoDTensor(np.ones((1, 1))))); x.ravel()
        array([0., 1.])
    """
    over_rows(CUDA[f"add_rows<{ctype(total.dtype)}>"], source, total)


def join_on_device(sources: Sequence[SelectedRows], target: SelectedRows) -> None:
    """Fill SelectedRows with the sum of several, each row once, in rising order.

    Example:
        >>> from fluidnb.values import LoDTensor
        >>> a, b = SelectedRows([1], 2, LoDTensor(np.ones((1, 1)))), SelectedRows((), 2)
        >>> join_on_device([a, a], b); b.rows(), b.value.array.tolist()
        ([1], [[2.0]])
    """
    ids = np.concatenate([s.rows_ for s in sources])
    parts = [values for s in sources if (values := value_array(s)).size] or [value_array(sources[0])]
    whole, at = type(parts[0])((len(ids), *parts[0].shape[1:]), parts[0].dtype), 0
    for part in parts:
        if part.size:
            copy_between("cuda", "cuda")(part, whole[at : at + len(part)])
        at += len(part)
    _merge(ids, whole, target)


def emit_sum_on_cuda(b: Binder, terms: Sequence[Any]) -> None:
    """Emit the sum of X into Out: SelectedRows when all terms are, else a tensor."""
    if b.is_rows("X"):
        first = terms[0]
        return b(join_on_device, list(terms), put_rows(b, "Out", shape_of(first), dtype_of(first)))
    added(b, [x for x in terms if not isinstance(x, SelectedRows)], b["Out"])
    for x in terms:
        if isinstance(x, SelectedRows):
            b(add_on_device, b["Out"], x)
    return None


def transform_on_device(
    source: SelectedRows, target: SelectedRows, function: Callable[..., None], merge: bool, *args: Any
) -> None:
    """Fill SelectedRows with a function of the rows of another.

    Args:
        function: ``function(values, *args, out)`` launches what writes the new rows; ``out`` may be the values.
        merge: whether rows with the same number are added up before.

    Example:
        >>> from fluidnb.values import LoDTensor
        >>> a, b = SelectedRows([1], 2, LoDTensor(np.ones((1, 1)))), SelectedRows((), 2)
        >>> transform_on_device(a, b, scale_values, False, None, np.float64(3.0)); b.to_dense().tolist()
        [[0.0], [3.0]]
    """
    if merge:
        merge_on_device(source, target)
        values = out = value_array(target)
    else:
        values = value_array(source)
        out = room_beside(values, values.shape, values.dtype)
        fill(target, source.rows_.copy(), out)
    function(values, *args, out)


def on_rows_on_cuda(b: Binder, function: Callable[..., None], *args: Any, merge: bool = False) -> None:
    """Emit an operator from X to Out for SelectedRows, as a function of their values.

    Args:
        function: ``function(values, *args, out)`` launches what writes the new values.
        merge: whether rows with the same number are added up before, as a function that is not linear needs.
    """
    source = b["X"]
    target = put_rows(b, "Out", shape_of(source), dtype_of(source))
    b(transform_on_device, source, target, function, merge, *args)


def scale_values(values: Array, by: Array | None, factor: Any, out: Array) -> None:
    """Multiply values with a number.

    Args:
        by: one element of their dtype that is the factor, or None.
        factor: the factor otherwise, a numpy scalar in the precision of the product.
        out: written; may be the values.

    Example:
        >>> x = np.zeros(2); scale_values(np.ones(2), None, np.float64(3.0), x); x
        array([3., 3.])
    """
    launch(NOW, "scale", [values, out], [by], factor, type(factor)(0), np.int32(0))


def clip_values(values: Array, bounds: Sequence[Array | None], low: Any, high: Any, out: Array) -> None:
    """Hold values between two bounds.

    Args:
        bounds: one element of their dtype for each bound, or None.
        low: the lower bound otherwise, a numpy scalar in the precision of the comparison.
        out: written; may be the values.

    Example:
        >>> x = np.zeros(2); clip_values(np.array([0.5, 3.0]), [None, None], np.float64(0), np.float64(1), x); x
        array([0.5, 1. ])
    """
    launch(NOW, "clip", [values, out], bounds, low, high)
