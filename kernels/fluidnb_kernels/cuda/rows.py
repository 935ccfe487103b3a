"""Launches over rows: threads stand in rows and along them, see ``rows.cuh``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda.grid import BLOCKS, THREADS
from fluidnb_kernels.cuda.source import Source


def by_rows(b: Binder, source: Source, kernel: str, rows: int, width: int, *args: Any) -> None:
    """Emit a launch in which threads take rows, and elements along them.

    Args:
        b: the binder.
        source: the file.
        kernel: the kernel; the number of rows comes as its last argument.
        rows: how many rows; nothing is launched for none.
        width: elements or words of a row.
        args: arrays and numpy scalars.
    """
    if rows and width:
        x = min(THREADS, 1 << (width - 1).bit_length())
        down = min(BLOCKS, -(-rows * x // THREADS))
        over = max(1, min(-(-width // x), BLOCKS // down))
        b(source[kernel], (down, over), (x, THREADS // x), 0, *args, np.int64(rows))
