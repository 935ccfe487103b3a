"""SelectedRows on a GPU: values stay on the device, numbers of rows on the host.

The number of rows is known when a call runs, so calls take the object itself, read it and launch.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb.values import SelectedRows
from fluidnb.values.copies import copy_between
from fluidnb_kernels.cuda import BLOCKS, THREADS, Function, Source, ctype, typed
from fluidnb_kernels.cuda.immediate import NOW
from fluidnb_kernels.cuda.upload import room_beside, uploaded
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math.same_shape import added, launch
from fluidnb_kernels.rows.values import dtype_of, fill, put_rows, shape_of, value_array

_IDS = ("int32", "int64")
CUDA = Source(__file__, "rows.cu", typed(
    ("merged add_rows", (*FLOATS, *_IDS)), ("but_padding", FLOATS, _IDS),
))  # fmt: skip


def _sorted(ids: Array) -> tuple[Array, Array, Array]:
    """Rising row numbers, each once; in which order values are taken; where those of each row begin, and the end."""
    order = ids.argsort(kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[starts], order, np.append(starts, len(order))


def merge_on_device(source: SelectedRows, target: SelectedRows) -> None:
    """Fill SelectedRows with those of another, each row once; the numbers of rows are sorted on the host."""
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
    """Launch a kernel with a block for each row of SelectedRows; repeated rows are summed in their order."""
    values = value_array(grad)
    if values.size == 0:
        return
    numbers = [uploaded(n, values) for n in _sorted(grad.rows_)]
    width = np.int64(values.size // len(values))
    function((numbers[0].size,), (THREADS,), 0, *numbers, values, *args, width)


def add_on_device(total: Array, source: SelectedRows) -> None:
    """Add SelectedRows to a tensor."""
    over_rows(CUDA[f"add_rows<{ctype(total.dtype)}>"], source, total)


def join_on_device(sources: Sequence[SelectedRows], target: SelectedRows) -> None:
    """Fill SelectedRows with the sum of several, each row once, in rising order."""
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


def transform_on_device(
    source: SelectedRows, target: SelectedRows, function: Callable[..., None], merge: bool, *args: Any
) -> None:
    """Fill SelectedRows with ``function(values, *args, out)`` of the rows of another; ``out`` may be the values."""
    if merge:
        merge_on_device(source, target)
        values = out = value_array(target)
    else:
        values = value_array(source)
        out = room_beside(values, values.shape, values.dtype)
        fill(target, source.rows_.copy(), out)
    function(values, *args, out)


def on_rows_on_cuda(b: Binder, function: Callable[..., None], *args: Any, merge: bool = False) -> None:
    """Emit a function of the values of SelectedRows from X to Out; ``merge``: repeated rows are summed before."""
    source = b["X"]
    target = put_rows(b, "Out", shape_of(source), dtype_of(source))
    b(transform_on_device, source, target, function, merge, *args)


def scale_values(values: Array, by: Array | None, factor: Any, out: Array) -> None:
    """Multiply values with a number, or with an array of one element."""
    launch(NOW, "scale", [values, out], [by], factor, type(factor)(0), np.int32(0))


def clip_values(values: Array, bounds: Sequence[Array | None], low: Any, high: Any, out: Array) -> None:
    """Clip values between two bounds: arrays of one element, or numpy scalars in the precision of the comparison."""
    launch(NOW, "clip", [values, out], bounds, low, high)
