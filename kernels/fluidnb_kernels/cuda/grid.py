"""Launches over elements, and over rows (``row_grid.cuh`` has the threads' layout)."""

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda.source import Source
from fluidnb_kernels.cuda.types import ctype, vector

#: Threads of a block where nothing says otherwise, and blocks of a grid whose threads go round in strides.
THREADS, BLOCKS = 256, 4096


def block_of(count: int) -> tuple[int]:
    """A block of whole warps with a thread for each of so many elements, as far as they go."""
    return (min(THREADS, -(-count // 32) * 32),)


def each(b: Binder, source: Source, kernel: str, count: int, *args: Any, per_thread: int = 1) -> None:
    """Emit a launch in which a thread takes one element after another, grid by grid."""
    if count:
        blocks = min(BLOCKS, -(-count // (THREADS * per_thread)))
        b(source[kernel], (blocks,), (THREADS,), 0, *args, np.int64(count))


def elementwise(b: Binder, source: Source, kernel: str, *arrays: Any, numbers: tuple[Any, ...] = ()) -> None:
    """Emit ``kernel<T, N>(arrays..., numbers..., count)`` over arrays of one size, with the widest loads they allow."""
    wide = vector(*arrays)
    name = f"{kernel}, {ctype(arrays[-1].dtype)}, {wide}>"
    each(b, source, name, arrays[-1].size, *arrays, *numbers, per_thread=wide)


def by_rows(b: Binder, source: Source, kernel: str, rows: int, width: int, *args: Any) -> None:
    """Emit a launch in which threads take rows, and elements along them."""
    if rows and width:
        b(source[kernel], *threads_of(rows, width), 0, *args, np.int64(rows))


def threads_of(rows: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The grid and the block in which threads take rows, and elements along them."""
    x = min(THREADS, 1 << (width - 1).bit_length())
    down = min(BLOCKS, -(-rows * x // THREADS))
    return (down, max(1, min(-(-width // x), BLOCKS // down))), (x, THREADS // x)
