"""Rows of x that meet a few rows of a tall table, on a GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder, Context
from fluidnb.values import SelectedRows
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import Function, Source, by_rows, ctype, each, threads_of, typed
from fluidnb_kernels.cuda.dtypes import of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.line_grid import TEAM
from fluidnb_kernels.cuda.upload import room_beside, uploaded
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.launch import NOTHING
from fluidnb_kernels.rows.values import dtype_of, fill, put_rows, shape_of
from fluidnb_kernels.tensor import strided_copy

_MOST = 1 << 16  # blocks of a grid whose warps go round in strides
CUDA = Source(__file__, "sampled_products.cu", typed(
    ("class_paths joined",), ("expected sampled_logits", ("float32", "float64")),
    ("dots path_cost path_slopes nce_cost nce_slopes dots_grad_x dots_grad_table dots_grad_rows", FLOATS),
))  # fmt: skip


def sparse_rows(table: str) -> Callable[[Context], tuple[str, ...]]:
    """The outputs that are SelectedRows: the gradient of a table where ``is_sparse`` says so."""
    return lambda c: (table + "@GRAD",) if c.attr("is_sparse", False) else ()


def slopes_of(b: Binder, x: str, table: str, bias: str) -> tuple[Any, Any, Any]:
    """The gradients of a product's operands, to be written; None for those without a consumer."""
    if b.attr("is_sparse", False) and b.wants(table + "@GRAD"):
        put_rows(b, table + "@GRAD", shape_of(b[table]), dtype_of(b[table]))
    dx, dtable, dbias = (b[s + "@GRAD"] if b.wants(s + "@GRAD") else None for s in (x, table, bias))
    return dx, dtable, dbias


def joined(b: Binder, labels: Array, samples: Array, picks: Array, shared: bool) -> None:
    """Emit ``picks = labels and samples beside each other``."""
    trues, many = labels.shape[1], picks.shape[1]
    sizes = [np.int64(n) for n in (trues, many, 0 if shared else many - trues)]
    each(b, CUDA, "joined", picks.size, labels, samples, picks, *sizes)


def dots(b: Binder, x: Array, table: Array, bias: Array | None, picks: Array) -> Array:
    """Emit ``x · table[pick] + bias[pick]`` for each pick of a row, in the precision in which kernels compute.

    It is 0 where a pick is below 0, NaN where it is too large.
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
    """Emit the gradients of `dots`: of x, of the table (whole or in rows) and of the bias; None without a consumer."""
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
    """Give SelectedRows a row for each row of the table that was picked, in rising order."""
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
