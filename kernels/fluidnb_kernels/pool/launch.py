"""Pooling on a GPU: launches over windows."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import Source, ctype, each, grid, typed
from fluidnb_kernels.cuda.sliding_windows import numbers_of
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.pool.rules import lowest
from fluidnb_kernels.sliding import Axis

#: Flags of the kernels, as ``pool.cu`` numbers them.
OUT, WHERE, STRICT, ALWAYS, EXCLUSIVE, ADD = 1, 2, 4, 8, 16, 32
#: Elements of a window that are worth a warp, and its threads.
_WORTH, _WARP = 64, 32

CUDA = Source(__file__, "pool.cu", typed(("largest mean largest_grad mean_grad taken", FLOATS)))


def shared(size: int, count: int) -> Axis:
    """An axis that windows share out."""
    return Axis(size, -(-size // max(count, 1)), 0, 1, 0, count)


def _each_window(b: Binder, name: str, axes: Sequence[Axis], inner: int, count: int, *args: Any) -> None:
    """Emit a launch with a thread per window, or a warp where windows are large and contiguous."""
    team = _WARP if inner == 1 and prod(a.window for a in axes) >= _WORTH else 1
    if count:
        blocks = min(grid.BLOCKS, -(-count * team // grid.THREADS))
        b(CUDA[name], (blocks,), (grid.THREADS,), 0, *args, np.int32(team), np.int64(count))


def largest(
    b: Binder, x: Array, out: Array | None, where: Array | None, axes: Sequence[Axis], inner: int = 1, flags: int = 0
) -> None:
    """Emit the largest element of each window of images [plane, …, inner], and its index in the plane, or None.

    Windows without elements have index -1. Flags: STRICT, only larger elements count; ALWAYS, windows begin with the
    lowest number.
    """
    written = [v for v in (out, where) if v is not None]
    flags |= OUT * (out is not None) | WHERE * (where is not None)
    _each_window(
        b, f"largest<{ctype(x.dtype)}>", axes, inner, written[0].size if written else 0, x, out, where,
        *numbers_of(axes), np.int64(inner), np.float64(lowest(x.dtype)), np.int32(flags),
    )  # fmt: skip


def mean(b: Binder, x: Array, out: Array, axes: Sequence[Axis], inner: int = 1, flags: int = EXCLUSIVE) -> None:
    """Emit the mean of each window of images [plane, …, inner]."""
    sizes = *numbers_of(axes), np.int64(inner), np.int32(flags)
    _each_window(b, f"mean<{ctype(x.dtype)}>", axes, inner, out.size, x, out, *sizes)


def largest_grad(
    b: Binder, g: Array, where: Array, dx: Array, axes: Sequence[Axis], inner: int = 1, flags: int = 0
) -> None:
    """Emit the gradient of `largest`."""
    sizes = *numbers_of(axes), np.int64(inner), np.int32(flags)
    each(b, CUDA, f"largest_grad<{ctype(dx.dtype)}>", dx.size, g, where, dx, *sizes)


def taken(b: Binder, y: Array, where: Array, out: Array, axes: Sequence[Axis], inner: int = 1) -> None:
    """Emit for each window the element of an image at the index found by `largest`."""
    sizes = (np.int64(prod(n)) for n in ([a.out for a in axes], [a.size for a in axes], [inner]))
    each(b, CUDA, f"taken<{ctype(y.dtype)}>", out.size, y, where, out, *sizes)


def mean_grad(b: Binder, g: Array, dx: Array, axes: Sequence[Axis], inner: int = 1, flags: int = EXCLUSIVE) -> None:
    """Emit the gradient of `mean`; flags: EXCLUSIVE as there, ADD to add the gradient to ``dx``."""
    sizes = *numbers_of(axes), np.int64(inner), np.int32(flags)
    each(b, CUDA, f"mean_grad<{ctype(dx.dtype)}>", dx.size, g, dx, *sizes)
