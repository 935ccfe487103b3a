"""Launches of functions of two tensors, and of the gradients of arithmetic."""

from collections.abc import Iterable, Iterator
from math import prod

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels.cuda import Source, ctype, each, elements, vector, widths
from fluidnb_kernels.cuda.dtypes import of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.element_kernels import ElementKernel, describe
from fluidnb_kernels.elementwise.broadcast import MOST, Band, Shape, alike, band, merged, six, summed
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.tensor.strided_copy import fold, layout_of, move

#: The shapes of X, Y and Out, with as many dimensions each.
Shapes = tuple[Shape, Shape, Shape]
#: What gradients read: X, Y, Out and its gradient; and what they are written to.
Read = tuple[Array, Array, Array, Array]
Targets = tuple[Array | None, Array | None]

#: The dtypes that arithmetic takes, the functions with gradients and those without.
NUMBERS = (*FLOATS, "int32", "int64")
_SMOOTH = ("add", "sub", "mul", "div", "max", "min", "fmax", "fmin", "pow")
_OTHER = ("floordiv", "mod")
#: Those of floats alone, with gradients.
_FLOATING = ("atan2",)
#: Blocks that keep a device busy; elements that a thread adds up before others help it; the least of columns that make
#: threads beside each other worth their while.
_BUSY, _RUN, _COLUMNS = 1024, 8, 16


def function_kernels(functions: Iterable[str], dtypes: Iterable[str], result: str = "") -> Iterator[str]:
    """The kernels of ``broadcast.cuh`` for some functions; ``result``: the dtype of Out, default that of X."""
    for function in functions:
        for dtype in elements(dtypes):
            types = f"{function}, {ctype(dtype)}, {ctype(np_dtype(result) if result else dtype)}"
            for width in widths(dtype):
                yield f"binary<{types}, {width}>"
                yield f"banded<{types}, {width}>"
            yield f"strided<{types}>"


def _kernels() -> Iterator[str]:
    yield from function_kernels([f"f::{name}" for name in (*_SMOOTH, *_OTHER)], NUMBERS)
    yield from function_kernels([f"f::{name}" for name in _FLOATING], FLOATS)
    for dtype in elements(FLOATS):
        own = ctype(dtype)
        yield f"fold<{own}>"
        for name in (*_SMOOTH, *_FLOATING):
            for width in widths(dtype):
                yield f"slopes<f::{name}, {own}, {width}>"
                yield f"banded_slope<f::{name}, {own}, {width}>"
            yield from (f"{kernel}<f::{name}, {own}>" for kernel in ("band_sums", "column_sums"))
            yield from (f"strided_slope<f::{name}, f::of_{side}, {own}>" for side in "xy")


CUDA = Source(__file__, "elementwise.cu", _kernels)
_BAND = {"y": ("mid", "inner")}
_SLOPES = {"dx": "{F}::dx({x}, {y}, {out}, {g})", "dy": "{F}::dy({x}, {y}, {out}, {g})"}
describe("binary", ElementKernel("F T R N", "x y out", "x y", {"out": "{F}::forward({x}, {y})"}))
describe("banded", ElementKernel("F T R N", "x y out mid inner", "x", {"out": "{F}::forward({x}, {y})"}, _BAND))
describe("slopes", ElementKernel("F T N", "x y out g dx dy", "x y out g", _SLOPES))
describe(
    "banded_slope",
    ElementKernel("F T N", "x y out g dx mid inner", "x out g", {"dx": _SLOPES["dx"]}, _BAND),
)


def binary(b: Binder, source: Source, function: str, x: Array, y: Array, out: Array, shapes: Shapes) -> None:
    """Emit a function of two tensors; ``shapes``: those of all three, of one rank. ``out`` may be an operand."""
    dims = merged(*shapes)
    types = f"{function}, {ctype(x.dtype)}, {ctype(out.dtype)}"
    width, strip = vector(x, y, out), band(dims)
    if alike(dims):
        each(b, source, f"binary<{types}, {width}>", out.size, x, y, out, per_thread=width)
    elif strip is not None:
        sizes = np.int64(strip.mid), np.int64(strip.inner)
        each(b, source, f"banded<{types}, {width}>", out.size, x, y, out, *sizes, per_thread=width)
    elif len(dims) <= MOST:
        steps = six(dims, range(len(dims)), [dim.in_x for dim in dims], [dim.in_y for dim in dims])
        each(b, source, f"strided<{types}>", out.size, x, y, out, *steps)
    else:
        sx, sy, so = shapes
        binary(b, source, function, _whole(b, x, sx, so), _whole(b, y, sy, so), out, (so, so, so))


def slopes(b: Binder, name: str, read: Read, targets: Targets, shapes: Shapes) -> None:
    """Emit the gradients of arithmetic.

    Args:
        read: X, Y, Out (anything of its shape where no gradient reads it) and its gradient.
        targets: the gradients of X and of Y, written; None where nobody wants one.
        shapes: the shapes of X, Y and Out, with as many dimensions each.
    """
    dims, g, (dx, dy) = merged(*shapes), read[3], targets
    strip = band(dims)
    own = f"f::{name}, {ctype(g.dtype)}"
    if alike(dims):
        width = vector(*read, *(d for d in (dx, dy) if d is not None))
        each(b, CUDA, f"slopes<{own}, {width}>", g.size, *read, dx, dy, per_thread=width)
        return
    if strip is not None:
        if dx is not None:
            width, sizes = vector(*read, dx), (np.int64(strip.mid), np.int64(strip.inner))
            each(b, CUDA, f"banded_slope<{own}, {width}>", g.size, *read, dx, *sizes, per_thread=width)
        if dy is not None:
            _band_sums(b, own, read, dy, strip)
        return
    for side, to in zip("xy", targets, strict=True):
        if to is not None:
            _repeated(b, name, side, read, to, shapes)


def _band_sums(b: Binder, own: str, read: Read, dy: Array, strip: Band) -> None:
    """Emit dY where Y is a band: by columns where its elements are adjacent, else a block for each."""
    outer, mid, inner = strip
    columns = inner == 1 and mid >= _COLUMNS
    count = outer * inner
    threads = 8 if columns else 256 if count > 128 else 32
    across = -(-mid // 32) if columns else mid
    parts = max(1, min(-(-_BUSY // max(across, 1)), count // (threads * _RUN)))
    some = b.tmp((parts, mid), wide_dtype(dy.dtype)) if parts > 1 else None
    sizes = [np.int64(outer), np.int64(mid)]
    if mid and columns:
        b(CUDA[f"column_sums<{own}>"], (across, parts), (32, 8), 0, *read, dy, some, *sizes)
    elif mid:
        b(CUDA[f"band_sums<{own}>"], (across, parts), (threads,), 0, *read, dy, some, *sizes, np.int64(inner))
    if some is not None:
        each(b, CUDA, f"fold<{ctype(dy.dtype)}>", mid, some, dy, np.int64(parts))


def _repeated(b: Binder, name: str, side: str, read: Read, to: Array, shapes: Shapes) -> None:
    """Emit the gradient of one operand, where operands are repeated in any way."""
    dims, (sx, sy, so), g = merged(*shapes), shapes, read[3]
    if len(dims) > MOST:
        wide = wide_dtype(g.dtype)  # what is rounded before it is summed is off
        x, y, out, g = (of_dtype(b, v, wide) for v in read)
        whole, sums = b.tmp(so, wide), writing_as(b, to, wide)
        repeated = _whole(b, x, sx, so), _whole(b, y, sy, so), out, g
        slopes(b, name, repeated, (whole, None) if side == "x" else (None, whole), (so, so, so))
        fold(b, whole, sums, so, summed(sx if side == "x" else sy, so))
        written_as(b, to, sums)
        return
    has = [dim.in_x if side == "x" else dim.in_y for dim in dims]
    order = sorted(range(len(dims)), key=lambda i: not has[i])
    count = prod(dim.size for dim, own in zip(dims, has, strict=True) if not own)
    steps = six(dims, order, [dim.in_x for dim in dims], [dim.in_y for dim in dims], [True] * len(dims))
    kernel = CUDA[f"strided_slope<f::{name}, f::of_{side}, {ctype(g.dtype)}>"]
    blocks, n = count >= 32, to.size
    if n:
        threads = 32 if 32 <= count <= 128 else 256
        grid = min(n if blocks else -(-n // threads), 1 << 16)
        b(kernel, (grid,), (threads,), 0, *read, to, *steps, np.int32(blocks), np.int64(count), np.int64(n))


def _whole(b: Binder, v: Array, shape: Shape, out: Shape) -> Array:
    """An operand repeated, in a workspace."""
    whole = b.tmp(out, v.dtype)
    move(b, whole, v, of=layout_of(v, shape))
    return whole
