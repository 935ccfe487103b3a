"""Launches over rows that fit into the registers of a warp or of a block: see ``register_rows.cuh``."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda.dtypes import wide_dtype
from fluidnb_kernels.cuda.line_grid import BLOCKS, TEAM, WARPS, at_once
from fluidnb_kernels.cuda.source import Source
from fluidnb_kernels.cuda.types import ctype, vector, widths

#: Elements that a thread holds, of short rows and of others; the shortest row; blocks of a grid.
_FEW, _MANY, _LEAST, _MOST = 8, 32, 64, 1 << 16


def _many(dtype: Any) -> int:
    """Elements that a thread holds at most: as many as registers allow."""
    return _MANY if wide_dtype(dtype).itemsize <= 4 else _FEW


def held_types(dtype: Any) -> Iterator[str]:
    """The template arguments of kernels over register rows: element, elements of a load, loads."""
    wide = widths(dtype)[-1]
    for elements in sorted({_FEW, _many(dtype)}):
        yield f"{ctype(dtype)}, {wide}, {elements // wide}"


def held_rows(
    b: Binder, source: Source, kernel: str, rows: int, n: int, arrays: tuple[Any, ...], *args: Any, two: bool = False,
    most: int = _MOST,
) -> bool:  # fmt: skip
    """Emit a launch in which a warp or a block has each row in registers, if rows fit; gives whether they do.

    Args:
        two: whether rows of two operands are held; a warp holds short ones alone, so that registers suffice for many.
        most: blocks of the grid.
    """
    dtype = arrays[0].dtype
    wide = vector(*arrays)
    way = WARPS if n <= 32 * (_FEW if two else _many(dtype)) else BLOCKS
    team = 32 if way == WARPS else 32 * TEAM
    if wide == 1 or n % wide or not _LEAST <= n <= team * _many(dtype):
        return False
    if rows:
        elements = _FEW if n <= team * _FEW else _many(dtype)
        blocks = min(most, -(-rows // at_once(way)))
        name = f"{kernel}<{ctype(dtype)}, {wide}, {elements // wide}>"
        b(source[name], (blocks,), (32, TEAM), 0, *args, np.int64(rows), np.int32(n), np.int32(way))
    return True
