"""Rows of tensors on a GPU by their numbers: taken, put, added up, and the places where a condition holds."""

import math
from collections.abc import Sequence

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.op import Array, Binder
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels.cuda import (
    BLOCKS,
    CTYPES,
    THREADS,
    Source,
    block_of,
    by_rows,
    cast,
    ctype,
    each,
    of_dtype,
    typed,
    vector,
)
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.tensor.strided_copy import WORDS, fill

#: The dtypes that can be added up in any order of threads.
SUMMED = (*FLOATS, "int32", "int64")
#: The number that stands for no padding: it names no row of any tensor.
NONE = -(2**63)

_INDEXES = ("int", "long long")
_CONDITIONS = tuple(CTYPES[d] for d in ("bool", "int32", "int64", "float32", "float64"))
#: Elements of a block that looks for hits, and threads of the one block that adds up what the others found.
_CHUNK, _SCANNERS = 1024, 256
#: How many comparisons of numbers an addition in order may cost, those of 2,048 rows; how many a block makes at least.
_COMPARISONS, _AT_ONCE = 1 << 22, 256
#: Columns that a block of additions in order has at a time.
_LANES = 32


_NARROW = [word for size, word in WORDS.items() if size <= 8]
CUDA = Source(__file__, "row_indexing.cu", typed(
    ("before coordinates",), ("claimed numbered", _INDEXES), ("taken put blanked chosen", WORDS.values(), _INDEXES),
    ("hot along_taken along_put", _NARROW, _INDEXES), ("added added_in_order along_added", SUMMED, _INDEXES),
    ("either only", _NARROW), ("hits found", _CONDITIONS),
))  # fmt: skip


def word(x: Array) -> str:
    """The word that holds an element."""
    return WORDS[x.dtype.itemsize]


def numbers(b: Binder, index: Array) -> Array:
    """An index in a dtype that kernels read: itself, or a workspace of int64."""
    return index if index.dtype in (np.int32, np.int64) else of_dtype(b, index, np_dtype("int64"))


def _holds(what: str, *sizes: tuple[Array, int]) -> None:
    """Require that arrays have as many elements of one size as a launch reads or writes."""
    for array, size in sizes:
        if array.size != size or array.dtype.itemsize != sizes[0][0].dtype.itemsize:
            raise OpValueError(
                f"The operands of {what} do not fit each other.",
                expected=f"{size} elements, {sizes[0][0].dtype}", received=f"{array.size} elements, {array.dtype}",
            )  # fmt: skip


def _words(width: int, *arrays: Array) -> tuple[str, int]:
    """The widest word in which rows of some width can be moved, and how many of them a row has."""
    item = arrays[0].dtype.itemsize
    size = next((n for n in WORDS if vector(*arrays) > 1 and n > item and width * item % n == 0), item)
    return WORDS[size], width * item // size


def take(
    b: Binder, x: Array, index: Array, out: Array, sides: Sequence[int], back: bool = False, padding: int = NONE
) -> None:
    """Emit ``out[o, k] = x[o, index[k]]``; with ``back``, negative numbers count from the end."""
    outer, height, inner = sides
    index, n = numbers(b, index), index.size
    _holds("taking rows", (x, outer * height * inner), (out, outer * n * inner))
    w, width = _words(inner, x, out)
    counts = [np.int64(v) for v in (n, height, width)]
    name = f"taken<{w}, {ctype(index.dtype)}>"
    by_rows(b, CUDA, name, outer * n, width, x, index, out, *counts, np.int32(back), np.int64(padding))


def add(
    b: Binder, x: Array, index: Array, total: Array, sides: Sequence[int], back: bool = False, padding: int = NONE
) -> None:
    """Emit ``total[o, index[k]] += x[o, k]``, short indexes in a fixed order; half precision is added up in float32."""
    outer, height, inner = sides
    index, n, wide = numbers(b, index), index.size, _wide(b, total)
    _holds("adding rows", (total, outer * height * inner), (x, outer * n * inner))
    counts = [np.int64(v) for v in (n, height, inner)]
    types, settings = f"<{ctype(x.dtype)}, {ctype(index.dtype)}>", (np.int32(back), np.int64(padding))
    if n == 1 or outer * n * max(n, _AT_ONCE) > _COMPARISONS:
        by_rows(b, CUDA, f"added{types}", outer * n, inner, x, index, wide, *counts, *settings)
    elif x.size:
        grid = outer * n, min(-(-inner // _LANES), BLOCKS)
        b(CUDA[f"added_in_order{types}"], grid, block_of(n), 0, x, index, wide, *counts, *settings)
    _settle(b, wide, total)


def _wide(b: Binder, total: Array) -> Array:
    """The array that kernels add to: the total, or a float32 copy of it in half precision."""
    return of_dtype(b, total, np_dtype("float32")) if total.dtype.itemsize < 4 else total


def _settle(b: Binder, wide: Array, total: Array) -> None:
    if wide is not total:
        cast(b, wide, total)


def put(b: Binder, x: Array, index: Array, out: Array) -> None:
    """Emit ``out[index[k]] = x[k]``; of several rows for one place the last one stays."""
    height, inner = out.shape[0], math.prod(out.shape[1:])
    _holds("putting rows", (out, height * inner), (x, index.size * inner))
    w, width = _words(inner, x, out)
    index, n, last = numbers(b, index), index.size, b.tmp((height,), np.int64)
    fill(b, last, -1)
    each(b, CUDA, f"claimed<{ctype(index.dtype)}>", n, index, last, np.int64(height))
    by_rows(b, CUDA, f"put<{w}, {ctype(index.dtype)}>", n, width, x, index, last, out, np.int64(width))


def blank(b: Binder, index: Array, out: Array) -> None:
    """Emit ``out[index[k]] = 0``."""
    (w, width), index = _words(math.prod(out.shape[1:]), out), numbers(b, index)
    counts = np.int64(out.shape[0]), np.int64(width)
    by_rows(b, CUDA, f"blanked<{w}, {ctype(index.dtype)}>", index.size, width, index, out, *counts)


def parts(b: Binder, index: Array, shape: Sequence[int]) -> tuple[Array, tuple[int, int, int]]:
    """One number for each part of a tensor that several numbers name, and the sides for `take` and `add`."""
    depth, index = index.shape[-1], numbers(b, index)
    n = index.size // depth
    rows = b.tmp((n,), np.int64)
    for d in range(depth):
        counts = [np.int64(v) for v in (depth, d, shape[d])]
        each(b, CUDA, f"numbered<{ctype(index.dtype)}>", n, index, rows, *counts)
    return rows, (1, math.prod(shape[:depth]), math.prod(shape[depth:]))


def choose(b: Binder, x: Array, index: Array, out: Array, which: tuple[int, int], others: bool) -> None:
    """Emit ``out[k] = x[k]`` where ``index[k]`` is a number."""
    inner = math.prod(out.shape[1:])
    _holds("choosing rows", (x, max(x.size, index.size * inner)), (out, max(out.size, index.size * inner)))
    (w, width), index = _words(inner, x, out), numbers(b, index)
    name, counts = f"chosen<{w}, {ctype(index.dtype)}>", [np.int64(v) for v in (index.size, *which)]
    by_rows(b, CUDA, name, out.shape[0], width, x, index, out, *counts, np.int32(others), np.int64(width))


def hot(b: Binder, index: Array, out: Array, lenient: bool) -> None:
    """Emit rows with a single 1."""
    index, width = numbers(b, index), out.shape[-1]
    _holds("one_hot", (out, index.size * width))
    one = np.frombuffer(np.ones(1, out.dtype).tobytes().ljust(8, b"\0"), np.uint64)[0]
    name = f"hot<{word(out)}, {ctype(index.dtype)}>"
    by_rows(b, CUDA, name, index.size, width, index, out, one, np.int64(width), np.int32(lenient))


def along(b: Binder, kind: str, x: Array, index: Array, out: Array, whole: Array, axis: int) -> None:
    """Emit one move for each number of an index along a dimension.

    Args:
        kind: ``taken``: out[i] = x[index[i]]; ``put``: out[index[i]] = x[i]; ``added``: out[index[i]] += x[i].
        index: whole numbers, a shape that differs from that of ``whole`` along the axis alone.
    """
    index = numbers(b, index)
    sizes = index.shape[axis], whole.shape[axis], math.prod(whole.shape[axis:][1:])
    n, height, inner = sizes
    if index.size:
        moved, outer = out if whole is x else x, index.size // (n * inner)
        _holds("moving along a dimension", (moved, index.size), (whole, outer * height * inner))
    target = _wide(b, out) if kind == "added" else out
    name = f"along_{kind}<{ctype(x.dtype) if kind == 'added' else word(x)}, {ctype(index.dtype)}>"
    each(b, CUDA, name, index.size, x, index, target, *(np.int64(n) for n in sizes))
    _settle(b, target, out)


def places(b: Binder, condition: Array, count: int) -> Array:
    """The indices at which a condition holds, all elements counted as one list: a workspace int64 [count]."""
    out = b.tmp((count,), np.int64)
    if count:
        if ctype(condition.dtype) not in _CONDITIONS:
            condition = of_dtype(b, condition, np_dtype("float32"))
        blocks, n, c = -(-condition.size // _CHUNK), np.int64(condition.size), ctype(condition.dtype)
        counts = b.tmp((blocks,), np.int64)
        b(CUDA[f"hits<{c}>"], (blocks,), (THREADS,), 0, condition, counts, n)
        b(CUDA["before"], (1,), (_SCANNERS,), 0, counts, np.int64(blocks))
        b(CUDA[f"found<{c}>"], (blocks,), (THREADS,), 0, condition, counts, out, n)
    return out


def coordinates(b: Binder, flat: Array, shape: Sequence[int], out: Array) -> None:
    """Emit the coordinates of flat indices, int64 [n, rank]."""
    for d, size in enumerate(shape):
        counts = [np.int64(n) for n in (len(shape), d, size, math.prod(shape[d + 1 :]))]
        each(b, CUDA, "coordinates", flat.size, flat, out, *counts)


def either(b: Binder, condition: Array, x: Array, y: Array, out: Array) -> None:
    """Emit ``out = x`` where a condition holds, ``y`` elsewhere."""
    _holds("where", (out, out.size), (x, out.size), (y, out.size))
    _holds("the condition of where", (condition, out.size))
    each(b, CUDA, f"either<{word(out)}>", out.size, condition, x, y, out)


def only(b: Binder, condition: Array, value: bool, x: Array, out: Array) -> None:
    """Emit ``out = x`` where a condition has a value, 0 elsewhere."""
    _holds("where", (out, out.size), (x, out.size))
    _holds("the condition of where", (condition, out.size))
    each(b, CUDA, f"only<{word(out)}>", out.size, condition, x, out, np.int32(value))
