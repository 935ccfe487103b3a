"""Rows of x that meet a few rows of a tall table, on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb.values import SelectedRows
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import CTYPES, Function, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.compute_dtype import wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.cuda.line_grid import TEAM
from fluidnb_kernels.cuda.row_grid import by_rows, threads_of
from fluidnb_kernels.cuda.upload import room_beside, uploaded
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.launch import NOTHING
from fluidnb_kernels.rows.values import fill
from fluidnb_kernels.tensor import strided_copy

Array = Any

_MOST = 1 << 16  # blocks of a grid whose warps go round in strides
_OF_EACH = (
    "dots", "way_cost", "way_slopes", "nce_cost", "nce_slopes", "dots_grad_x", "dots_grad_table", "dots_grad_rows",
)  # fmt: skip
_WIDE = ("expected", "sampled_logits")


def _kernels() -> Iterator[str]:
    yield from ("ways", "joined")
    yield from (f"{name}<{CTYPES[dtype]}>" for name in _OF_EACH for dtype in FLOATS)
    yield from (f"{name}<{CTYPES[dtype]}>" for name in _WIDE for dtype in ("float32", "float64"))


CUDA = Source(__file__, "sampled_products.cu", _kernels)


def joined(b: Binder, labels: Array, samples: Array, picks: Array, shared: bool) -> None:
    """Emit ``picks = labels and samples beside each other``.

    Args:
        labels: int64 [rows, n].
        samples: int64, m for each row.
        picks: int64 [rows, n + m], written.
        shared: whether there are m samples only, the same for all rows.
    """
    trues, many = labels.shape[1], picks.shape[1]
    sizes = [np.int64(n) for n in (trues, many, 0 if shared else many - trues)]
    each(b, CUDA, "joined", picks.size, labels, samples, picks, *sizes)


def dots(b: Binder, x: Array, table: Array, bias: Array | None, picks: Array) -> Array:
    """Emit ``x · table[pick] + bias[pick]`` for each pick of a row.

    Args:
        x: [rows, width].
        table: [height, width].
        bias: a number for each row of the table, or None.
        picks: int64 [rows, many].

    Returns:
        [rows, many] in the precision in which kernels compute; 0 where a pick is below 0, NaN where it is too large.
    """
    out = b.tmp(picks.shape, wide_dtype(x.dtype))
    table, shift = of_dtype(b, table, x.dtype), NOTHING if bias is None else of_dtype(b, bias, x.dtype)
    if picks.size:
        sizes = [np.int64(n) for n in (picks.shape[1], *table.shape, picks.size)]
        blocks = min(_MOST, -(-picks.size // TEAM))
        b(CUDA[f"dots<{ctype(x.dtype)}>"], (blocks,), (32, TEAM), 0, x, table, shift, picks, out, *sizes)
    return out


def dots_grad(
    b: Binder, slopes: Array, picks: Array, operands: tuple[Array, Array], outs: tuple[Any, Any, Any]
) -> None:
    """Emit the gradients of `dots`.

    Args:
        picks: as in `dots`.
        outs: gradients of x, of the table (whole or in rows) and of the bias, written; None where not wanted.
    """
    x, table = operands
    dx, dtable, dbias = outs
    many, t = np.int64(picks.shape[1]), ctype(x.dtype)
    height, width = (np.int64(n) for n in table.shape)
    if dx is not None:
        given = of_dtype(b, table, x.dtype)
        sizes = many, height, width
        by_rows(b, CUDA, f"dots_grad_x<{t}>", len(x), int(width), slopes, picks, given, dx, *sizes)
    if isinstance(dtable, SelectedRows):
        b(fill_rows, CUDA[f"dots_grad_rows<{t}>"], slopes, picks, x, dtable)
    for out, beside in ((dtable, x), (dbias, NOTHING)):
        if out is None or isinstance(out, SelectedRows):
            continue
        total, across = writing_as(b, out, slopes.dtype), width if out is dtable else np.int64(1)
        strided_copy.fill(b, total)
        numbers = many, height, across
        by_rows(b, CUDA, f"dots_grad_table<{t}>", picks.size, int(across), slopes, picks, beside, total, *numbers)
        written_as(b, out, total)


def fill_rows(function: Function, slopes: Array, picks: Array, x: Array, target: SelectedRows) -> None:
    """Give SelectedRows a row for each row of the table that was picked, in rising order.

    Args:
        slopes: [rows, many].
        picks: int64, the same shape.
        x: [rows, width].

    Example:
        >>> s, one = SelectedRows((), 9), np.ones((1, 2))
        >>> s.value.array = np.zeros((0, 2)); fill_rows(CUDA["dots_grad_rows<double>"], one, np.array([[4, 4]]), one, s)
        >>> s, s.value.array
        (SelectedRows(rows=[4], height=9, value=[1, 2] float64), array([[2., 2.]]))
    """
    ids = on_host(picks).reshape(-1)
    order = ids.argsort(kind="stable")
    order = order[(ids[order] >= 0) & (ids[order] < target.height_)]
    rows, counts = np.unique(ids[order], return_counts=True)
    values = room_beside(x, (len(rows), x.shape[1]), x.dtype)
    if values.size:
        places = uploaded(order, picks), uploaded(counts.cumsum(), picks)
        sizes = [np.int64(n) for n in (picks.shape[1], x.shape[1], len(rows))]
        function(*threads_of(*values.shape), 0, slopes, *places, x, values, *sizes)
    fill(target, rows, values)
