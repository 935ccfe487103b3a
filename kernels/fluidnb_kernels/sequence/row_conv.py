"""row_conv: lookahead convolution along each sequence with one filter per column."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import Source, by_rows, ctype, each_line, typed
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.sequence.context import Neighbours
from fluidnb_kernels.sequences import offsets_of, one_dtype, require_lod

CUDA = Source(__file__, "row_conv.cu", typed(("row_conv row_conv_filter", FLOATS)))


def _infer(c: Context) -> None:
    one_dtype(c, "X", "Filter")
    c.check_inputs()
    x = c["X"]
    require_lod(c)
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def _neighbours(b: Binder) -> Neighbours:
    return Neighbours(offsets_of(b), 0, len(b["Filter"]))


@op(
    "row_conv",
    inputs={"X: float[n, width] lod": "", "Filter: float[future context + 1, width]": ""},
    outputs={"Out": "like X"},
    cost="X * Filter[:1]",
    infer=_infer,
    dtypes=FLOATS,
    grad=default_grad("X", "Filter", "Out@GRAD"),
    cuda=FLOATS,
)
def row_conv(b: Binder) -> None:
    """Out[t] = Σ over k of X[t + k] · Filter[k], element by element, within each sequence.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = ([[1.0], [2.0], [4.0]], [[2, 1]])
        >>> run_op("row_conv", {"X": x, "Filter": [[10.0], [1.0]]})["Out"].array.ravel()
        array([12., 20., 40.])

    Source: Fluid's row_conv_op (Deep Speech 2, Amodei et al. 2015).
    """
    x, weight = b["X"], b["Filter"]
    if b.on_cuda:
        counts, width = row_maps.on_device(b, _reach(offsets_of(b), len(weight))), x.shape[1]
        operands = x, weight, counts, b["Out"], np.int64(1), np.int64(width)
        return by_rows(b, CUDA, f"row_conv<{ctype(x.dtype)}>", len(x), width, *operands)
    rows = _neighbours(b).emit(b, x).reshape(len(x), *weight.shape)
    b(np.add.reduce, apply(b, np.multiply, rows, weight), 1, None, b["Out"])


@grad_op("row_conv_grad", dtype_slot="X")
def row_conv_grad(b: Binder) -> None:
    """dFilter[k] = Σ over t of X[t + k] · dOut[t]; dX[t] = Σ over k of dOut[t - k] · Filter[k]."""
    x, weight, g = b["X"], b["Filter"], b["Out@GRAD"]
    around = _neighbours(b)
    spread = np.broadcast_to(g[:, None], (len(x), *weight.shape))
    if b.wants("Filter@GRAD"):
        rows = around.emit(b, x).reshape(len(x), *weight.shape)
        b(np.add.reduce, apply(b, np.multiply, rows, spread), 0, None, b["Filter@GRAD"])
    if b.wants("X@GRAD"):
        shares = b.tmp(spread.shape, x.dtype)
        b(np.multiply, g[:, None], weight, out=shares)
        around.emit_grad(b, shares.reshape(len(around.rows), x.shape[1]), b["X@GRAD"])


def _reach(offsets: Any, depth: int, back: bool = False) -> Any:
    """For each row how many rows of its sequence a filter reaches from it, itself counted."""
    lengths, rows = np.diff(offsets), np.arange(offsets[-1])
    left = rows + 1 - np.repeat(offsets[:-1], lengths) if back else np.repeat(offsets[1:], lengths) - rows
    return np.minimum(left, depth)


@kernel("row_conv_grad", place="cuda", dtypes=FLOATS)
def row_conv_grad_on_cuda(b: Binder) -> None:
    x, weight, g, offsets = b["X"], b["Filter"], b["Out@GRAD"], offsets_of(b)
    name, width, depth = ctype(x.dtype), x.shape[1], len(weight)
    if b.wants("Filter@GRAD"):
        dfilter = b["Filter@GRAD"]
        counts = row_maps.on_device(b, _reach(offsets, depth))
        each_line(b, CUDA, f"row_conv_filter<{name}>", dfilter.size, len(x), width, x, g, counts, dfilter)
    if b.wants("X@GRAD"):
        counts = row_maps.on_device(b, _reach(offsets, depth, back=True))
        args = g, weight, counts, b["X@GRAD"], np.int64(-1), np.int64(width)
        by_rows(b, CUDA, f"row_conv<{name}>", len(x), width, *args)
