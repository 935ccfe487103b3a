"""Rows on a GPU by maps that are computed while binding: moved, put in their places, summed."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Binder, product
from fluidnb_kernels.cuda import Source, by_rows, ctype, of_dtype, typed, vector
from fluidnb_kernels.cuda.line_grid import TEAM, at_once, way_of
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.tensor.strided_copy import WORDS

#: The divisors of a sum, as ``row_maps.cu`` numbers it.
NOTHING, COUNT, ROOT = range(3)
#: The argument of a kernel for an array that is not given.
NO_ARRAY = np.uintp(0)
#: The longest sum that a thread makes alone; how many elements keep a device busy, each made by a thread; and blocks of
#: a grid, whose blocks go round in strides.
_ALONE, _BUSY, _MOST = 16, 1 << 17, 1 << 16


CUDA = Source(__file__, "row_maps.cu", typed(
    ("gathered placed", WORDS.values()), ("summed summed_together", FLOATS),
))  # fmt: skip


def _words(width: int, *arrays: Array) -> tuple[str, int]:
    """The widest word in which rows of some width can be moved, and how many of them a row has."""
    item = arrays[0].dtype.itemsize
    aligned = vector(*arrays) > 1
    size = next((n for n in WORDS if aligned and n > item and width * item % n == 0), item)
    return WORDS[size], width * item // size


def _width(out: Array) -> int:
    """Elements of a row."""
    return product(out.shape[1:])


def on_device(b: Binder, numbers: Any) -> Array:
    """Numbers computed while binding as kernels read them."""
    return b.table(np.ascontiguousarray(numbers, np.int64))


def gather(b: Binder, x: Array, rows: Array, out: Array, other: Array | None = None) -> None:
    """Emit ``out[i] = x[rows[i]]``; a negative number ``-1 - k`` names row k of ``other``, or its one element."""
    if not out.size:
        return
    x, other = of_dtype(b, x, out.dtype), None if other is None else of_dtype(b, other, out.dtype)
    single = other is not None and other.size == 1
    arrays = (x, out) if other is None else (x, out, other)
    width = _width(out)
    word, words = (WORDS[out.dtype.itemsize], width) if single else _words(width, *arrays)
    given, along = (NO_ARRAY if other is None else other), np.int64(not single)
    by_rows(b, CUDA, f"gathered<{word}>", len(rows), words, x, given, along, on_device(b, rows), out, np.int64(words))


def place(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[rows[i]] = x[i]`` for int64 rows on the device, no number twice."""
    x = of_dtype(b, x, out.dtype)
    word, words = _words(_width(out), x, out)
    by_rows(b, CUDA, f"placed<{word}>", len(rows), words, x, rows, out, np.int64(words))


def inverse(rows: Array, count: int) -> Array:
    """For each of ``count`` rows the index at which ``rows`` names it, no number twice; -1 where there is none."""
    out = np.full(count, -1, np.int64)
    out[rows] = np.arange(len(rows))
    return out


def add_up(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[r] = the sum of all x[i] with rows[i] == r``, none for negative rows: the gradient of `gather`."""
    order = np.argsort(rows, kind="stable")[np.count_nonzero(np.asarray(rows) < 0) :]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[order], minlength=len(out)))])
    add_parts(b, x, starts, out, order=None if (order == np.arange(len(order))).all() else order)


def add_parts(
    b: Binder, x: Array, starts: Array, out: Array, order: Array | None = None, empty: float = 0.0, by: int = NOTHING
) -> None:
    """Emit ``out[i]`` = the sum of ``x[order[k]]`` for k from starts[i] to starts[i + 1], over a divisor."""
    if not out.size:
        return
    x, width, longest = of_dtype(b, x, out.dtype), _width(out), int(np.diff(starts).max())
    numbers = NO_ARRAY if order is None else on_device(b, order)
    args = x, on_device(b, starts), numbers, out, np.float64(empty), np.int32(by), np.int64(width)
    if longest <= _ALONE or width >= 32 and out.size >= _BUSY:
        by_rows(b, CUDA, f"summed<{ctype(out.dtype)}>", len(out), width, *args)
    else:
        together(b, CUDA, f"summed_together<{ctype(out.dtype)}>", out.size, longest, width, *args)


def together(b: Binder, source: Source, kernel: str, lines: int, longest: int, inner: int, *args: Any) -> None:
    """Emit a launch in which threads work together at lines of different lengths."""
    if lines:
        way = way_of(longest, inner)
        blocks = min(_MOST, -(-lines // at_once(way)))
        b(source[kernel], (blocks,), (32, TEAM), 0, *args, np.int64(lines), np.int32(way))
