"""sequence_conv and row_conv: rows and their neighbours times a filter."""

import math
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import Source, by_rows, ctype, each_line, typed
from fluidnb_kernels.cuda.gemm import gemm as product_on_cuda
from fluidnb_kernels.emit import FLOATS, apply, reading, writing, written
from fluidnb_kernels.math.matmul import gemm
from fluidnb_kernels.rules import agree
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.sequences import emit_put, emit_rows, emit_sum_rows, offsets_of, one_dtype, require_lod
from fluidnb_kernels.tensor.strided_copy import fill


class Neighbours:
    """Indices of the ``count`` context rows of each row, from ``start`` on (-1 is the row before)."""

    def __init__(self, offsets: Array, start: int, count: int) -> None:
        lengths = np.diff(offsets)
        first = np.repeat(offsets[:-1], lengths)[:, None]
        behind = np.repeat(offsets[1:], lengths)[:, None]
        wanted = np.arange(offsets[-1])[:, None] + np.arange(start, start + count)
        before, after = wanted < first, wanted >= behind
        self.start, self.count = start, count
        # int64 [n · count]; any row where `outside` marks that there is none
        self.rows = np.where(before, first, np.where(after, behind - 1, wanted)).reshape(-1)
        self.outside = np.flatnonzero(before | after)
        above = max(-start, 0)
        beyond = np.where(before, wanted - first + above, wanted - behind + above)
        self.beyond = beyond.reshape(-1)[self.outside]  # rows of the padding, first those before the sequence

    @property
    def signed(self) -> Array:
        """``rows``, with ``-1 - k`` for row k of the padding."""
        out = self.rows.copy()
        out[self.outside] = -1 - self.beyond
        return out

    def on_cuda(self, b: Binder, x: Array, padding: Array | None = None) -> Array:
        """Emit the neighbours of each row on a GPU, into a workspace [n · count, width]."""
        rows, out = self.signed, b.tmp((len(self.rows), x.shape[1]), x.dtype)
        row_maps.gather(b, x, rows if padding is not None else np.maximum(rows, -1), out, padding)
        return out

    def emit(self, b: Binder, x: Array, padding: Array | None = None) -> Array:
        """Emit the neighbours of each row, into a workspace [n · count, width]; padding None is zeros."""
        out = b.tmp((len(self.rows), x.shape[1]), x.dtype)
        emit_rows(b, x, self.rows, out)
        if padding is None:
            emit_put(b, b.const(0, x.dtype), self.outside, out)
        elif len(self.outside):
            missing = b.tmp((len(self.outside), x.shape[1]), x.dtype)
            emit_rows(b, padding, self.beyond, missing)
            emit_put(b, missing, self.outside, out)
        return out

    def emit_grad(self, b: Binder, g: Array, dx: Array) -> None:
        """Emit the gradient of the rows from that of their neighbourhoods, which is cleared outside the sequences."""
        # row r is neighbour k of row r - start - k, where that row has it
        n, ks = len(dx), np.arange(self.count)
        home = np.arange(n)[:, None] - self.start - ks
        places = home * self.count + ks
        inside = (home >= 0) & (home < n)
        inside[inside] = self.rows[places[inside]] == np.broadcast_to(np.arange(n)[:, None], places.shape)[inside]
        emit_put(b, b.const(0, g.dtype), self.outside, g)
        shares = b.tmp((n, self.count, g.shape[1]), g.dtype)
        flat = shares.reshape(n * self.count, g.shape[1])
        emit_rows(b, g, np.where(inside, places, 0).reshape(-1), flat)
        emit_put(b, b.const(0, g.dtype), np.flatnonzero(~inside), flat)
        b(np.add.reduce, shares, 1, None, dx)

    def emit_padding_grad(self, b: Binder, g: Array, dpadding: Array) -> None:
        """Emit the gradient of the padding; before `emit_grad`, which clears what it reads."""
        outside = b.tmp((len(self.outside), g.shape[1]), g.dtype)
        emit_rows(b, g, self.outside, outside)
        emit_sum_rows(b, outside, self.beyond, dpadding)


def _conv_infer(c: Context) -> None:
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


def _conv_neighbours(b: Binder) -> Neighbours:
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
    infer=_conv_infer,
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
        return product_on_cuda(b, _contexts(b, _conv_neighbours(b)), b["Filter"], b["Out"])
    x, weight = b["X"], b["Filter"]
    rows = _conv_neighbours(b).emit(b, x, b["PaddingData"] if b.attr("paddingTrainable") else None)
    gemm(b, rows.reshape(len(x), weight.shape[0]), weight, b["Out"])


@grad_op("sequence_conv_grad", dtype_slot="X")
def sequence_conv_grad(b: Binder) -> None:
    """dFilter = rowsᵀ · dOut; dX and dPaddingData: each row's part of dOut · Filterᵀ, over all rows that see it."""
    x, weight, g, trained = b["X"], b["Filter"], b["Out@GRAD"], b.attr("paddingTrainable", False)
    around = _conv_neighbours(b)
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
    x, weight, g, around = b["X"], b["Filter"], b["Out@GRAD"], _conv_neighbours(b)
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


CUDA = Source(__file__, "row_conv.cu", typed(("row_conv row_conv_filter", FLOATS)))


def _row_conv_infer(c: Context) -> None:
    one_dtype(c, "X", "Filter")
    c.check_inputs()
    x = c["X"]
    if len(x.shape) == 2:
        require_lod(c)
    c.require(
        len(x.shape) == 2 or not c.lod("X"), "Input(X) of row_conv has a batch of sequences, and a LoD beside it.",
        expected="[n, width] with LoD, or [batch, steps, width] without", received=f"{list(x.shape)} with LoD",
    )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def _row_conv_offsets(b: Binder) -> Array:
    """The offsets of the sequences: those of the LoD, or of as many equally long ones as the batch has."""
    x = b["X"]
    return offsets_of(b) if x.ndim == 2 else np.arange(len(x) + 1) * x.shape[1]


def _all_rows(array: Array) -> tuple[int, int]:
    """The shape of the rows of all sequences, one after another."""
    return math.prod(array.shape[:-1]), array.shape[-1]


def _row_conv_neighbours(b: Binder) -> Neighbours:
    return Neighbours(_row_conv_offsets(b), 0, len(b["Filter"]))


@op(
    "row_conv",
    inputs={
        "X: float[n, width] lod | float[batch, steps, width]": "sequences, by their LoD or one for each of a batch",
        "Filter: float[future context + 1, width]": "",
    },
    outputs={"Out": "like X"},
    cost="X * Filter[:1]",
    infer=_row_conv_infer,
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
    x, weight = reading(b, b["X"], _all_rows(b["X"])), b["Filter"]
    if b.on_cuda:
        counts, width = row_maps.on_device(b, _reach(_row_conv_offsets(b), len(weight))), x.shape[1]
        operands = x, weight, counts, b["Out"], np.int64(1), np.int64(width)
        return by_rows(b, CUDA, f"row_conv<{ctype(x.dtype)}>", len(x), width, *operands)
    rows, out = _row_conv_neighbours(b).emit(b, x).reshape(len(x), *weight.shape), writing(b, b["Out"], x.shape)
    b(np.add.reduce, apply(b, np.multiply, rows, weight), 1, None, out)
    return written(b, b["Out"], out)


@grad_op("row_conv_grad", dtype_slot="X", cuda=FLOATS)
def row_conv_grad(b: Binder) -> None:
    """dFilter[k] = Σ over t of X[t + k] · dOut[t]; dX[t] = Σ over k of dOut[t - k] · Filter[k]."""
    shape, weight = _all_rows(b["X"]), b["Filter"]
    x, g = reading(b, b["X"], shape), reading(b, b["Out@GRAD"], shape)
    if b.on_cuda:
        offsets = _row_conv_offsets(b)
        name, width, depth = ctype(x.dtype), x.shape[1], len(weight)
        if b.wants("Filter@GRAD"):
            dfilter = b["Filter@GRAD"]
            counts = row_maps.on_device(b, _reach(offsets, depth))
            each_line(b, CUDA, f"row_conv_filter<{name}>", dfilter.size, len(x), width, x, g, counts, dfilter)
        if b.wants("X@GRAD"):
            counts = row_maps.on_device(b, _reach(offsets, depth, back=True))
            args = g, weight, counts, b["X@GRAD"], np.int64(-1), np.int64(width)
            by_rows(b, CUDA, f"row_conv<{name}>", len(x), width, *args)
        return
    around = _row_conv_neighbours(b)
    spread = np.broadcast_to(g[:, None], (len(x), *weight.shape))
    if b.wants("Filter@GRAD"):
        rows = around.emit(b, x).reshape(len(x), *weight.shape)
        b(np.add.reduce, apply(b, np.multiply, rows, spread), 0, None, b["Filter@GRAD"])
    if b.wants("X@GRAD"):
        shares = b.tmp(spread.shape, x.dtype)
        b(np.multiply, g[:, None], weight, out=shares)
        dx = writing(b, b["X@GRAD"], shape)
        around.emit_grad(b, shares.reshape(len(around.rows), x.shape[1]), dx)
        written(b, b["X@GRAD"], dx)


def _reach(offsets: Any, depth: int, back: bool = False) -> Any:
    """For each row how many rows of its sequence a filter reaches from it, itself counted."""
    lengths, rows = np.diff(offsets), np.arange(offsets[-1])
    left = rows + 1 - np.repeat(offsets[:-1], lengths) if back else np.repeat(offsets[1:], lengths) - rows
    return np.minimum(left, depth)
