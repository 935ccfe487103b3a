"""Calls that native code can make: elementwise functions, copies and sums, over dimensions in the order of memory."""

import operator
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fluidnb.memory.views import extent
from fluidnb.op.masked_copy import masked_copy
from fluidnb.op.scalar_fast_path import copy_row
from fluidnb.runtime.native.expressions import ON_ONE, TYPES, expression, limit
from fluidnb.runtime.native.numpy_loops import Loop, loop_of

Array = Any
#: A call of a segment: a callable, which may be a partial with keyword arguments, and its positional arguments.
Call = tuple[Any, tuple[Any, ...]]


class Operand(NamedTuple):
    """An array of a statement, and its bytes from element to element along the statement's dimensions."""

    array: Array
    strides: tuple[int, ...]


class Statement(NamedTuple):
    """One call, for the C code.

    The last operand is written, the others are read. ``kind`` is ``map`` for functions of each element, ``rows`` for
    sums (or another reduction) along the last dimension, ``columns`` for sums along all but the last, ``pick`` for one
    element by an index, which only loops have: they can stop where no element has the index.
    """

    kind: str
    dims: tuple[int, ...]
    operands: tuple[Operand, ...]
    chars: str  # type characters in which it computes, of all operands
    text: str | None  # expression in C; None where numpy's loop computes it
    loop: Loop | None
    call: int  # index of the call
    masked: bool = False  # whether the last operand but one says which elements are written
    from_first: bool = False  # whether a reduction begins with the first element, not with 0


def statement_of(call: Call, index: int, in_c: bool = True) -> Statement | None:
    """The statement of a call; None where native code cannot make it.

    Args:
        in_c: whether its expression in C is wanted, which can take a compiler to find out.
    """
    function, args = call
    kw: Mapping[str, Any] = {}
    if type(function) is partial:
        kw, function = function.keywords, function.func
    if function is operator.setitem and len(args) == 3 and (args[1] is Ellipsis or args[1] == ()):
        return _copy(args[2], args[0], None, index)
    if function is copy_row:
        return _pick(args[0], args[1], args[2], index)
    if function is masked_copy:
        return _copy(args[1], args[0], args[2], index)
    if function is np.copyto and set(kw) <= {"where", "casting"}:
        return _copy(args[1], args[0], kw.get("where"), index)
    function = ON_ONE.get(function, function)
    if type(function) is np.ufunc:
        if function.nout != 1 or set(kw) - {"out"} or len(args) != function.nin + (not kw):
            return None
        return _map(function, args[: function.nin], kw["out"] if kw else args[-1], index, in_c)
    ufunc: Any = getattr(function, "__self__", None)
    if type(ufunc) is np.ufunc and getattr(function, "__name__", "") == "reduce" and not kw and len(args) in (4, 5):
        return _reduction(ufunc, args[0], args[1], args[2], args[3], index)
    return None


def _usable(arrays: Sequence[Any]) -> bool:
    return all(
        type(a) is np.ndarray and a.dtype.char in TYPES and a.dtype.isnative and a.size and a.flags.aligned
        for a in arrays
    )


def _plain(array: Array) -> Array:
    """A constant row as its one number, anything else as it is."""
    if not array.flags.writeable and array.size > 1 and (array == array.flat[0]).all():
        return array.reshape(-1)[:1].reshape(())
    return array


def _copy(source: Any, target: Any, where: Any, index: int) -> Statement | None:
    operands = [source, target] if where is None else [source, where, target]
    if not _usable(operands) or (where is not None and where.dtype != bool):
        return None
    exact = source.dtype == target.dtype or (source.dtype.kind in "b" and target.dtype.kind in "fiu")
    exact = exact or (source.dtype.kind == target.dtype.kind == "f") or (source.dtype.kind + target.dtype.kind == "if")
    if not exact:
        return None
    char = target.dtype.char
    chars = char + char if where is None else char + "?" + char
    return _over(target.shape, [*map(_plain, operands[:-1]), target], chars, "{0}", None, index, where is not None)


def _pick(x: Array, at: Array, out: Array, index: int) -> Statement | None:
    if not _usable((x, at, out)) or x.ndim != 1 or at.size != 1 or at.dtype.kind not in "iu" or x.dtype != out.dtype:
        return None
    if overlap(x, out) or overlap(at, out):
        return None
    operands = tuple(Operand(array, ()) for array in (x, at, out))
    return Statement("pick", (), operands, x.dtype.char + at.dtype.char + out.dtype.char, None, None, index)


def _map(ufunc: Any, ins: Sequence[Any], out: Any, index: int, in_c: bool) -> Statement | None:
    if not _usable((*ins, out)) or ufunc.signature is not None:  # a product is no function of each element
        return None
    try:
        types = ufunc.resolve_dtypes((*(x.dtype for x in ins), None))
    except TypeError:
        return None
    chars = "".join(t.char for t in types)
    if types[-1] != out.dtype:
        return None
    if not in_c:
        return _over(out.shape, [*map(_plain, ins), out], chars, None, None, index)
    text = limit(ufunc, ins[1]) if len(ins) == 2 and chars[0] in "fd" else None
    text = text or expression(ufunc, chars[:-1])
    loop = None
    if text is None:
        loop = loop_of(ufunc, chars)
        if loop is None or any(x.dtype.char != c for x, c in zip(ins, chars, strict=False)):
            return None
    return _over(out.shape, [*map(_plain, ins), out], chars, text, loop, index)


def _over(
    shape: tuple[int, ...], arrays: Sequence[Array], chars: str, text: str | None, loop: Any, index: int,
    masked: bool = False,
) -> Statement | None:  # fmt: skip
    """A statement over all elements of a shape, to which the arrays broadcast."""
    try:
        rows = [np.broadcast_to(a, shape).strides for a in arrays]
    except ValueError:
        return None
    if arrays[-1].shape != shape or _self_overlapping(arrays, rows):
        return None
    dims, strides = collapsed(shape, rows, rows[-1])
    return Statement("map", dims, tuple(map(Operand, arrays, strides)), chars, text, loop, index, masked)


def _reduction(ufunc: Any, x: Any, axis: Any, dtype: Any, out: Any, index: int) -> Statement | None:
    if not _usable((x, out)) or dtype not in (None, out.dtype) or x.dtype != out.dtype or x.dtype.char not in "fd":
        return None
    if ufunc not in (np.add, np.maximum, np.minimum):
        return None
    chosen = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = {i % max(x.ndim, 1) for i in chosen}  # a scalar has axes 0 and -1
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    if out.size != prod(kept):
        return None
    to = out.reshape(kept)
    if not np.shares_memory(to, out) or overlap(x, out):
        return None
    to_strides = tuple(0 if n == 1 else s for n, s in zip(kept, to.strides, strict=True))
    chars = 3 * x.dtype.char
    sizes, (x_row, out_row) = collapsed(x.shape, [x.strides, to_strides], x.strides)
    operands = (Operand(x, x_row), Operand(out, out_row))
    if sizes and x_row[-1] == x.itemsize and out_row[-1] == 0 and all(out_row[:-1]):
        loop = loop_of(ufunc, chars)
        if loop is None:
            return None
        return Statement("rows", sizes, operands, chars, None, loop, index, from_first=ufunc is not np.add)
    row = len(sizes) == 2 and out_row == (0, x.itemsize) and x_row[-1] == x.itemsize
    if row and ufunc is np.add:
        return Statement("columns", sizes, operands, chars, "{1} + {0}", None, index)
    return None


def collapsed(
    shape: Sequence[int], rows: Sequence[Sequence[int]], order: Sequence[int]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The fewest dimensions for strides of several arrays over a shape, the outermost in memory first.

    Args:
        rows: the strides of each array.
        order: strides by which the dimensions are ordered.

    Example:
        >>> collapsed((2, 1, 3), [(12, 0, 4), (0, 0, 4)], (12, 0, 4))
        ((2, 3), [(12, 4), (0, 4)])
        >>> collapsed((2, 3), [(12, 4)], (12, 4))
        ((6,), [(4,)])
    """
    axes = sorted((i for i, n in enumerate(shape) if n != 1), key=lambda i: -abs(order[i]))
    dims: list[int] = []
    strides: list[list[int]] = [[] for _ in rows]
    for i in axes:
        if dims and all(s[-1] == row[i] * shape[i] for s, row in zip(strides, rows, strict=True)):
            dims[-1] *= shape[i]
            for s, row in zip(strides, rows, strict=True):
                s[-1] = row[i]
            continue
        dims.append(shape[i])
        for s, row in zip(strides, rows, strict=True):
            s.append(row[i])
    return tuple(dims), [tuple(s) for s in strides]


def bounds(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of an array and of the one behind its last."""
    low, high = extent(array.shape, array.strides, array.itemsize)
    start = array.__array_interface__["data"][0]
    return start + low, start + high


def overlap(a: Array, b: Array) -> bool:
    """Whether the bytes from the first to the last element of two arrays have a part in common."""
    (low, high), (start, end) = bounds(a), bounds(b)
    return low < end and start < high


def _self_overlapping(arrays: Sequence[Array], rows: Sequence[tuple[int, ...]]) -> bool:
    """Whether the written array shares bytes with a read one, other than element by element."""
    out = arrays[-1]
    at = out.__array_interface__["data"][0]
    for a, row in zip(arrays[:-1], rows[:-1], strict=True):
        if overlap(a, out):
            used = [(s, t) for s, t, n in zip(row, rows[-1], out.shape, strict=True) if n != 1]
            if a.__array_interface__["data"][0] != at or a.dtype != out.dtype or any(s != t for s, t in used):
                return True
    return False
