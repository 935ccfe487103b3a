"""sequence_conv: a filter over each row and its neighbours in the sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda.gemm import gemm as product_on_cuda
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math.mul import gemm
from fluidnb_kernels.rules import agree
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.sequence.context import Neighbours
from fluidnb_kernels.sequences import offsets_of, one_dtype, require_lod
from fluidnb_kernels.tensor.strided_copy import fill


def _infer(c: Context) -> None:
    one_dtype(c, "X", "Filter", "PaddingData")
    x, weight, count, start = c["X"], c["Filter"], c.attr("contextLength"), c.attr("contextStart")
    c.check_inputs("X", "Filter")
    c.require(
        x.shape[1] < 0 or weight.shape[0] in (-1, count * x.shape[1]),
        "Filter's height should be context_length * input_hidden_size.",
        expected=f"{count} · {x.shape[1]}", received=weight.shape[0],
    )  # fmt: skip
    if c.attr("paddingTrainable"):
        around = max(-start, 0) + max(start + count - 1, 0)
        c.require(
            c.has("PaddingData"), "Input(PaddingData) of sequence_conv is missing.", expected=f"[{around}, width]",
            received="nothing", hint="paddingTrainable needs rows before and after each sequence.",
        )  # fmt: skip
        c.require(
            agree(c["PaddingData"].shape, (around, x.shape[1])),
            "If context_start is less than 0 or the context reaches beyond the row itself, PaddingData has a row for "
            "each neighbour that may be outside a sequence.",
            expected=[around, x.shape[1]], received=list(c["PaddingData"].shape),
        )  # fmt: skip
    require_lod(c, levels=1)
    c.set("Out", (x.shape[0], weight.shape[1]), x.dtype, c.lod("X"))


def _neighbours(b: Binder) -> Neighbours:
    return Neighbours(offsets_of(b), b.attr("contextStart", 0), b.attr("contextLength"))


@op(
    "sequence_conv",
    inputs={
        "X: float[n, width] lod": "",
        "PaddingData?: float[rows before and after, width]": "the rows outside a sequence, instead of zeros",
        "Filter: float[contextLength · width, filters]": "",
    },
    outputs={"Out": "[n, filters]"},
    attrs={
        "contextLength": Attr("int", doc="how many rows a filter sees", gt=0),
        "contextStart": Attr("int", 0, "the first of them, counted from the row itself"),
        "contextStride": Attr("int", 1, "from row to row; only 1", enum=(1,)),
        "paddingTrainable": Attr("bool", False, "whether PaddingData is used outside a sequence"),
    },
    cost="X[:1] * Filter",
    infer=_infer,
    dtypes=FLOATS,
    grad=default_grad("X", "PaddingData", "Filter", "Out@GRAD"),
    cuda=FLOATS,
)
def sequence_conv(b: Binder) -> None:
    """Out[t] = [X[t + contextStart] … X[t + contextStart + contextLength - 1]] · Filter, within each sequence.

    Rows outside the sequence are zeros, or those of PaddingData.

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"X": ([[1.0], [2.0], [4.0]], [[2, 1]]), "Filter": [[10.0], [1.0]]}
        >>> run_op("sequence_conv", inputs, {"contextLength": 2})["Out"].array.ravel()
        array([12., 20., 40.])

    Source: Fluid's sequence_conv_op.
    """
    if b.on_cuda:
        return product_on_cuda(b, _contexts(b, _neighbours(b)), b["Filter"], b["Out"])
    x, weight = b["X"], b["Filter"]
    rows = _neighbours(b).emit(b, x, b["PaddingData"] if b.attr("paddingTrainable") else None)
    gemm(b, rows.reshape(len(x), weight.shape[0]), weight, b["Out"])


@grad_op("sequence_conv_grad", dtype_slot="X")
def sequence_conv_grad(b: Binder) -> None:
    """dFilter = rowsᵀ · dOut; dX and dPaddingData: each row's part of dOut · Filterᵀ, over all rows that see it."""
    x, weight, g, trained = b["X"], b["Filter"], b["Out@GRAD"], b.attr("paddingTrainable", False)
    around = _neighbours(b)
    if b.wants("Filter@GRAD"):
        rows = around.emit(b, x, b["PaddingData"] if trained else None)
        gemm(b, rows.reshape(len(x), weight.shape[0]).T, g, b["Filter@GRAD"])
    if b.wants("X@GRAD") or b.wants("PaddingData@GRAD"):
        drows = b.tmp((len(x), weight.shape[0]), x.dtype)
        gemm(b, g, weight.T, drows)
        drows = drows.reshape(len(around.rows), x.shape[1])
        if b.wants("PaddingData@GRAD"):
            if trained:
                around.emit_padding_grad(b, drows, b["PaddingData@GRAD"])
            else:
                b(np.copyto, b["PaddingData@GRAD"], b.const(0, x.dtype))
        if b.wants("X@GRAD"):
            around.emit_grad(b, drows, b["X@GRAD"])


def _contexts(b: Binder, around: Neighbours) -> Any:
    """The rows around each row, [n, contextLength · width]."""
    padding = b["PaddingData"] if b.attr("paddingTrainable", False) else None
    return around.on_cuda(b, b["X"], padding).reshape(len(b["X"]), len(b["Filter"]))


@kernel("sequence_conv_grad", place="cuda", dtypes=FLOATS)
def sequence_conv_grad_on_cuda(b: Binder) -> None:
    x, weight, g, around = b["X"], b["Filter"], b["Out@GRAD"], _neighbours(b)
    if b.wants("Filter@GRAD") and not len(x):
        fill(b, b["Filter@GRAD"])
    elif b.wants("Filter@GRAD"):
        product_on_cuda(b, _contexts(b, around), g, b["Filter@GRAD"], tx=True)
    if not b.wants("X@GRAD") and not b.wants("PaddingData@GRAD"):
        return
    drows = b.tmp((len(x), len(weight)), x.dtype)
    product_on_cuda(b, g, weight, drows, ty=True)
    drows, rows = drows.reshape(len(around.rows), x.shape[1]), around.signed
    if b.wants("X@GRAD"):
        row_maps.add_up(b, drows, rows, b["X@GRAD"])
    if b.wants("PaddingData@GRAD") and b.attr("paddingTrainable", False):
        row_maps.add_up(b, drows, -1 - rows, b["PaddingData@GRAD"])
    elif b.wants("PaddingData@GRAD"):
        fill(b, b["PaddingData@GRAD"])
