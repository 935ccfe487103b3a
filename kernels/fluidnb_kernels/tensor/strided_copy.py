"""Moving elements on a GPU: from any part of a tensor to any part of another, in as few launches as that takes.

Numpy says which elements a part has: `layout_of` gives an array of the tensor's shape with nothing behind it, whose
slices, transposes and broadcasts name elements of the tensor.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.memory import Reserve
from fluidnb.op import Array, Binder
from fluidnb.op.c_code import Constant
from fluidnb.op.compile_context import Spec
from fluidnb_kernels.cuda import Source, ctype, each, vector

#: A dimension: its size, its step in the source, its step in the target.
Dim = tuple[int, int, int]

#: Bytes of a word -> its type, the widest first.
WORDS = {16: "uint4", 8: "unsigned long long", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"}
#: Dimensions of a launch that come compiled; one with fewer has some of size 1.
_RANKS = (2, 4, 6)
#: Words of a launch, less than what a signed 32-bit number counts; larger moves are cut in two.
_MOST = 2**31 - 1
#: Rows and columns of a tile, rows that a block reads at once, and how many make tiles worth their while.
_TILE, _STRIPE, _WORTH = 32, 8, 12
#: Elements that one thread adds up before it is better to have more threads, and threads that keep a GPU busy.
_RUN, _BUSY = 64, 1 << 16

_LAYOUTS = Reserve()


def _kernels() -> Iterator[str]:
    for word in WORDS.values():
        yield from (f"strided<{word}, {rank}>" for rank in _RANKS)
        yield f"tiled<{word}>"
        yield f"filled<{word}>"
    yield "folded<float, float>"
    yield "folded<double, double>"
    for half in ("__half", "__nv_bfloat16"):
        yield from (f"folded<{pair}>" for pair in (f"{half}, {half}", f"{half}, float", f"float, {half}"))


CUDA = Source(__file__, "strided_copy.cu", _kernels)


def layout_of(array: Array, shape: Sequence[int] | None = None) -> Array:
    """The memory layout of a tensor, in its shape or another: bytes without data, whose strides count elements."""
    return _LAYOUTS(array.shape if shape is None else shape, np.uint8)


def move(b: Binder, out: Array, x: Array, to: Array | None = None, of: Array | None = None) -> None:
    """Emit a copy of a part of a tensor to a part of another.

    Args:
        to: which elements of ``out``, a view of ``layout_of(out)``; all of them by default.
        of: which elements of ``x``, a view of ``layout_of(x)`` that numpy broadcasts to the shape of ``to``.
    """
    to = layout_of(out) if to is None else to
    of = np.broadcast_to(layout_of(x) if of is None else of, to.shape)
    if out.dtype.itemsize != x.dtype.itemsize:
        raise OpValueError("A move is between tensors of one dtype.", expected=out.dtype, received=x.dtype)
    if to.size:
        dims = _merged(list(zip(to.shape, of.strides, to.strides, strict=True)))
        _emit(b, out, x, _begin(of, x), _begin(to, out), dims)


def _begin(view: Array, tensor: Array | Spec) -> int:
    """The number of the first element of a view of `layout_of`, which must be of a tensor of that size."""
    whole = view
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    if whole.size > tensor.size:
        raise OpValueError(
            f"A move would reach outside a tensor of shape {list(tensor.shape)}.",
            expected=f"{tensor.size} elements", received=f"a view of {whole.size}",
        )  # fmt: skip
    return int(view.__array_interface__["data"][0] - whole.__array_interface__["data"][0])


def _merged(dims: list[Dim]) -> list[Dim]:
    """Dimensions without those of size 1, merged where their strides are contiguous."""
    out: list[Dim] = []
    for n, f, t in dims:
        if n == 1:
            continue
        if out and out[-1][1:] == (n * f, n * t):
            n *= out.pop()[0]
        out.append((n, f, t))
    return out


def _emit(b: Binder, out: Array, x: Array, of: int, to: int, dims: list[Dim]) -> None:
    """Emit the launches of one move; offsets and steps count elements."""
    if math.prod(n for n, _, _ in dims) > _MOST or len(dims) > _RANKS[-1]:
        (n, f, t), *rest = dims
        for start, end in ((0, n // 2), (n // 2, n)):
            _emit(b, out, x, of + start * f, to + start * t, _merged([(end - start, f, t), *rest]))
        return
    word, of, to, dims = _in_words(vector(out, x) > 1, out.dtype.itemsize, of, to, dims)
    begins, across = (np.int64(of), np.int64(to)), _across(dims)
    if across is None:
        rank = next(r for r in _RANKS if r >= len(dims))
        count = math.prod(n for n, _, _ in dims)
        return each(b, CUDA, f"strided<{word}, {rank}>", count, x, out, *begins, *_numbers(dims, rank))
    (columns, _, to_step), (rows, from_step, _) = dims[across], dims[-1]
    planes = [dim for i, dim in enumerate(dims[:-1]) if i != across]
    tiles = -(-rows // _TILE) * -(-columns // _TILE) * math.prod(n for n, _, _ in planes)
    sides = [np.int64(n) for n in (rows, columns, from_step, to_step)]
    return b(CUDA[f"tiled<{word}>"], (tiles,), (_TILE, _STRIPE), 0, x, out, *begins, *_numbers(planes, 4), *sides)


def _in_words(aligned: bool, item: int, of: int, to: int, dims: list[Dim]) -> tuple[str, int, int, list[Dim]]:
    """The widest word that a move can be made in, and the move in such words."""
    for size, word in WORDS.items():
        k = max(size // item, 1)
        if size == item or not dims:
            return WORDS[item], of, to, dims
        *outer, (n, f, t) = dims
        numbers = [of, to, n, *(step for _, *steps in outer for step in steps)]
        if aligned and (f, t) == (1, 1) and not any(number % k for number in numbers):
            return word, of // k, to // k, _merged([*((m, g // k, u // k) for m, g, u in outer), (n // k, 1, 1)])
    raise AssertionError(item)


def _across(dims: list[Dim]) -> int | None:
    """The contiguous dimension of the source where the last one is contiguous in the target alone."""
    if len(dims) < 2 or dims[-1][1] == 1 or dims[-1][2] != 1 or dims[-1][0] < _WORTH:
        return None
    return next((i for i, (n, f, _) in enumerate(dims[:-1]) if f == 1 and n >= _WORTH), None)


def _numbers(dims: list[Dim], rank: int) -> list[Any]:
    """Dimensions as a kernel takes them, see strides.cuh."""
    dims = [*[(1, 0, 0)] * (rank - len(dims)), *dims, *[(1, 0, 0)] * (_RANKS[-1] - rank)]
    sizes, shifts = [], 0
    for place, (n, _, _) in enumerate(dims[1:]):
        s = (n - 1).bit_length()
        shifts |= s << 5 * place
        sizes.append(np.uint64(n | (((1 << 32) * ((1 << s) - n)) // n + 1) << 32))
    return [
        *sizes, np.uint32(shifts), *(np.int64(f) for _, f, _ in dims), *(np.int64(t) for _, _, t in dims),
    ]  # fmt: skip


def fill(b: Binder, out: Array, value: Any = 0) -> None:
    """Emit ``out = value``."""
    item = out.dtype.itemsize
    bits = np.frombuffer(np.asarray(value).astype(out.dtype).tobytes() * (8 // item), np.uint64)[0]
    wide = 16 if vector(out) > 1 and out.size * item % 16 == 0 else item
    each(b, CUDA, f"filled<{WORDS[wide]}>", out.size * item // wide, out, bits)


def fold(b: Binder, x: Array, out: Array, shape: Sequence[int], axes: Sequence[int]) -> None:
    """Emit sums over some dimensions of ``x``, seen in a shape."""
    sizes = list(shape)
    if not math.prod(sizes):
        return fill(b, out)
    steps: list[tuple[int, int, int]] = []  # what is added up, into how many parts, how many elements lie inside
    for axis in sorted(axes, key=lambda a: -sizes[a]):
        inner = math.prod(sizes[axis + 1 :])
        while sizes[axis] > 1:
            length, rest = sizes[axis], math.prod(sizes) // sizes[axis]
            sizes[axis] = -(-length // _RUN) if length > _RUN and rest < _BUSY else 1
            steps.append((length, sizes[axis], inner))
    if not steps:
        return move(b, out, x, layout_of(out, (out.size,)), layout_of(x, (x.size,)))
    count = x.size
    for i, (length, parts, inner) in enumerate(steps):
        count = count // length * parts
        last = i == len(steps) - 1
        y = out if last else b.tmp((count,), np.float32 if out.dtype.itemsize == 2 else out.dtype)
        numbers = (np.int64(length), np.int64(parts), np.int64(inner))
        each(b, CUDA, f"folded<{ctype(x.dtype)}, {ctype(y.dtype)}>", count, x, y, *numbers)
        x = y


def parts_in_c(out: Spec, x: Spec, to: Array | None = None, of: Array | None = None) -> dict[str, Constant]:
    """Constants of C code that copies a part of a tensor to a part of another; arguments as for `move`."""
    to = layout_of(out) if to is None else to
    of = np.broadcast_to(layout_of(x) if of is None else of, to.shape)
    dims = _merged(list(zip(to.shape, of.strides, to.strides, strict=True))) or [(1, 1, 1)]
    sizes, from_steps, to_steps = (list(row) for row in zip(*dims, strict=True))
    numbers = {"COUNT": math.prod(sizes), "RANK": len(dims), "FROM": _begin(of, x), "TO": _begin(to, out)}
    return {**numbers, "WHOLE": out.size, "SIZES": sizes, "FROM_STEPS": from_steps, "TO_STEPS": to_steps}
