"""Launches over lines of a tensor: elements at stride ``inner``, processed together."""

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda.source import Source

#: Ways in which a block works at lines, as ``reduce.cuh`` numbers them.
WARPS, BLOCKS, COLUMNS = range(3)
#: Threads of a block: 32 beside each other, and how many of those there are.
TEAM = 8
#: Blocks of a grid, whose blocks go round in strides; the longest line of a warp; the longest of 8 threads.
_MOST, _WARP, _SHORT = 1 << 16, 1024, 16


def way_of(n: int, inner: int) -> int:
    """The assignment of threads to lines: a warp or a block for each, or lines beside each other."""
    if inner > 1 or n <= _SHORT:
        return COLUMNS
    return WARPS if n <= _WARP else BLOCKS


def at_once(way: int) -> int:
    """The number of lines that a block works at."""
    return {WARPS: TEAM, BLOCKS: 1, COLUMNS: 32}[way]


def each_line(b: Binder, source: Source, kernel: str, lines: int, n: int, inner: int, *args: Any) -> None:
    """Emit a launch in which threads work at lines together."""
    if lines:
        way = way_of(n, inner)
        blocks = min(_MOST, -(-lines // at_once(way)))
        b(
            source[kernel], (blocks,), (32, TEAM), 0, *args, np.int64(lines), np.int64(n), np.int64(inner),
            np.int32(way),
        )  # fmt: skip


def lines_along(shape: Any, axis: int) -> tuple[int, int, int]:
    """The number of lines along an axis, their length, and the distance of their elements."""
    axis %= max(len(shape), 1)
    inner = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    return int(np.prod(shape[:axis], dtype=np.int64)) * inner, shape[axis] if shape else 1, inner
