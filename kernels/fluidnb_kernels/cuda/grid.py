"""Launches over elements: blocks and threads."""

from __future__ import annotations

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
