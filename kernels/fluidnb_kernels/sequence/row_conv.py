"""row_conv: each column looks ahead along its sequence with a filter of its own."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.emit import FLOATS, made
from fluidnb_kernels.sequence.context import Neighbours
from fluidnb_kernels.sequences import offsets_of, one_dtype, require_lod


def _infer(c: Context) -> None:
    one_dtype(c, "X", "Filter")
    x, weight = c["X"], c["Filter"]
    c.require(
        x.ndim == 2 and weight.ndim == 2 and (x.shape[1] == weight.shape[1] or -1 in (x.shape[1], weight.shape[1])),
        "Input(Filter) of row_conv must have a column for each column of Input(X).",
        expected="X [rows, width] and Filter [future context + 1, width]",
        received=f"{list(x.shape)} and {list(weight.shape)}",
    )  # fmt: skip
    require_lod(c)
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def _neighbours(b: Binder) -> Neighbours:
    return Neighbours(offsets_of(b), 0, len(b["Filter"]))


@op(
    "row_conv",
    inputs={"X": "[n, width] with sequences", "Filter": "[future context + 1, width]"},
    outputs={"Out": "like X"},
    infer=_infer,
    dtypes=FLOATS,
    grad=default_grad("X", "Filter", "Out@GRAD"),
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
    rows = _neighbours(b).emit(b, x).reshape(len(x), *weight.shape)
    b(np.add.reduce, made(b, np.multiply, rows, weight), 1, None, b["Out"])


@grad_op("row_conv_grad", dtype_slot="X")
def row_conv_grad(b: Binder) -> None:
    """dFilter[k] = Σ over t of X[t + k] · dOut[t]; dX[t] = Σ over k of dOut[t - k] · Filter[k]."""
    x, weight, g = b["X"], b["Filter"], b["Out@GRAD"]
    around = _neighbours(b)
    spread = np.broadcast_to(g[:, None], (len(x), *weight.shape))
    if b.wants("Filter@GRAD"):
        rows = around.emit(b, x).reshape(len(x), *weight.shape)
        b(np.add.reduce, made(b, np.multiply, rows, spread), 0, None, b["Filter@GRAD"])
    if b.wants("X@GRAD"):
        shares = b.tmp(spread.shape, x.dtype)
        b(np.multiply, g[:, None], weight, out=shares)
        around.emit_grad(b, shares.reshape(len(around.rows), x.shape[1]), b["X@GRAD"])
