"""Sorting along lines of a tensor on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import Source, ctype, lines_along, typed
from fluidnb_kernels.tensor.line_extremes import ORDERED
from fluidnb_kernels.tensor.strided_copy import lay, move

#: Elements that a block sorts, its threads, and blocks of a grid, whose blocks go round in strides.
TILE, _SORTERS, _MOST = 1024, 256, 1 << 16


CUDA = Source(__file__, "sort.cu", typed(("sorted merged", ORDERED)))


def sort(b: Binder, x: Array, axis: int, descending: bool, out: Array | None, indices: Array | None) -> None:
    """Emit sorted elements and where they were, where wanted; equal ones keep their order."""
    lines, n, inner = lines_along(x.shape, axis)
    if inner > 1 and n > TILE:
        _sort_across(b, x, axis, descending, out, indices)
    elif lines and n:
        down = np.int32(descending)
        width = min(TILE, 1 << (n - 1).bit_length())
        tiles = -(-n // width)
        passes = (tiles - 1).bit_length()
        at_once = TILE // width
        values, places = _stages(b, x, out, passes), _stages(b, x, indices, passes, np.int64)
        b(
            CUDA[f"sorted<{ctype(x.dtype)}>"], (min(_MOST, -(-lines * tiles // at_once)),), (_SORTERS,), 0, x,
            values[0], places[0], *map(np.int64, (lines, n, inner)), np.int32(width), np.int64(tiles), down,
        )  # fmt: skip
        for i in range(passes):
            b(
                CUDA[f"merged<{ctype(x.dtype)}>"], (min(_MOST, lines * tiles),), (_SORTERS,), 0, values[i], places[i],
                values[i + 1], places[i + 1], *map(np.int64, (lines, n, TILE << i)), down,
            )  # fmt: skip


def _stages(b: Binder, x: Array, out: Array | None, passes: int, dtype: Any = None) -> list[Array | None]:
    """Targets of the first launch and of each merging pass: two workspaces in turn, the output last."""
    spare = [b.tmp(x.shape, dtype or x.dtype) for _ in range(min(passes, 2))]
    return [*(spare[i % 2] for i in range(passes)), out]


def _sort_across(b: Binder, x: Array, axis: int, descending: bool, out: Array | None, indices: Array | None) -> None:
    """Sort long lines of strided elements: copied to contiguous workspaces, and back."""

    def aside(like: Array) -> Array:
        return np.moveaxis(lay(like), axis, -1)

    shape = aside(x).shape
    lines = b.tmp(shape, x.dtype)
    move(b, lines, x, of=aside(x))
    results = [(y, b.tmp(shape, y.dtype)) for y in (out, indices) if y is not None]
    given = {id(y): t for y, t in results}
    sort(b, lines, -1, descending, given.get(id(out)), given.get(id(indices)))
    for y, t in results:
        move(b, y, t, aside(y))
