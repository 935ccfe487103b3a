"""Launches over rows: the threads' layout is described in ``row_grid.cuh``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda.grid import BLOCKS, THREADS
from fluidnb_kernels.cuda.source import Source


def by_rows(b: Binder, source: Source, kernel: str, rows: int, width: int, *args: Any) -> None:
    """Emit a launch in which threads take rows, and elements along them."""
    if rows and width:
        b(source[kernel], *threads_of(rows, width), 0, *args, np.int64(rows))


def threads_of(rows: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The grid and the block in which threads take rows, and elements along them."""
    x = min(THREADS, 1 << (width - 1).bit_length())
    down = min(BLOCKS, -(-rows * x // THREADS))
    return (down, max(1, min(-(-width // x), BLOCKS // down))), (x, THREADS // x)
