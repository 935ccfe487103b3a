"""sequence_pool and sequence_softmax: one row from each sequence, and rows as shares of it."""

from collections.abc import Collection

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, OpDef, OpDesc, default_grad, grad_op, kernel, op, product
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import Source, by_rows, ctype, typed
from fluidnb_kernels.emit import FLOATS, apply, reading, writing, written, zeros
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.sequence.row_maps import on_device, together
from fluidnb_kernels.sequences import (
    column,
    emit_put,
    emit_reduce,
    emit_rows,
    offsets_of,
    owners,
    parts_of,
    require_lod,
)
from fluidnb_kernels.tensor.strided_copy import fill

KINDS = ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST")
_DIVIDED = {"SUM": row_maps.NOTHING, "AVERAGE": row_maps.COUNT, "SQRT": row_maps.ROOT}

CUDA = Source(__file__, "pool.cu", typed(("highest shares returned", FLOATS)))


def _pool_infer(c: Context) -> None:
    x, lod = c["X"], c.lod("X")
    require_lod(c)
    count = len(lod[-1]) - 1 if c.runtime else -1
    c.set("Out", (count, *x.shape[1:]), x.dtype, lod[:-1])
    c.set("MaxIndex", (count, *x.shape[1:]), np.int32)


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    index = ("MaxIndex",) if desc.attrs.get("pooltype") == "MAX" else ()
    return default_grad("X", *index, "Out@GRAD")(desc, definition, no_grad)


def pick_highest(x: Array, parts: Array, out: Array, places: Array) -> None:
    """Write the largest element of each column of `parts_of` an array, and its row; the first one of several."""
    for i, start, end in parts.tolist():
        part = x[start:end]
        np.maximum.reduce(part, 0, None, out[i])
        np.add(part.argmax(0), start, places[i], casting="unsafe")


@op(
    "sequence_pool",
    inputs={"X: any[n, …] lod": ""},
    outputs={"Out": "[sequences, …]", "MaxIndex~": "int32, like Out: with MAX the row of each element, else 0"},
    attrs={
        "pooltype": Attr("string", "AVERAGE", "what becomes of a sequence", enum=KINDS),
        "pad_value": Attr("float", 0.0, "what a sequence without rows gives"),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    },
    cost="X",
    infer=_pool_infer,
    grad=_grad,
)
def sequence_pool(b: Binder) -> None:
    """Out[i] = the AVERAGE, SUM, SUM / √length (SQRT), MAX, LAST or FIRST of the rows of sequence i of the last level.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = ([[1.0], [3.0], [4.0], [6.0], [5.0]], [[2, 0, 3]])
        >>> run_op("sequence_pool", {"X": x}, {"pooltype": "SUM"})["Out"].ravel()
        array([ 4.,  0., 15.])
        >>> run_op("sequence_pool", {"X": x}, {"pooltype": "MAX"})["MaxIndex"].ravel()
        array([ 1, -1,  3], dtype=int32)

    Source: Fluid's sequence_pool_op; the pad_value of its later versions.
    """
    x, out, index, kind = b["X"], b["Out"], b["MaxIndex"], b.attr("pooltype")
    offsets, pad = offsets_of(b), b.attr("pad_value")
    lengths = np.diff(offsets)
    full, empty = np.flatnonzero(lengths), np.flatnonzero(lengths == 0)
    if kind == "MAX":
        if index is None:
            return emit_reduce(b, np.maximum, x, offsets, out, pad)
        width = product(x.shape[1:])
        flat = reading(b, x, (len(x), width))
        outs, places = (writing(b, a, (len(lengths), width)) for a in (out, index))
        emit_put(b, b.const(pad, out.dtype), empty, outs)
        emit_put(b, b.const(-1, index.dtype), empty, places)
        b(pick_highest, flat, parts_of(offsets), outs, places)
        written(b, out, outs)
        return written(b, index, places)
    if index is not None:
        zeros(b, index)
    if kind in ("LAST", "FIRST"):
        emit_put(b, b.const(pad, out.dtype), empty, out)
        rows = _ends(offsets, kind)[full]
        picked = b.tmp((len(full), *out.shape[1:]), out.dtype) if len(empty) else out
        emit_rows(b, x, rows, picked)
        return emit_put(b, picked, full, out) if len(empty) else None
    emit_reduce(b, np.add, x, offsets, out, pad)
    if kind != "SUM":
        b(np.divide, out, column(_divisor(lengths, kind), out), out=out)


@c_code("sequence_pool", "sequence_pool_grad", "sequence_softmax")
def _in_c(c: Context) -> dict[str, Constant]:
    shape, kind = c["X"].shape, c.attr("pooltype", "AVERAGE")
    return {
        "COUNT": product(shape), "WIDTH": product(shape[1:]), "PAD": float(c.attr("pad_value", 0.0)),
        "IS_SUM": int(kind in _DIVIDED), "IS_AVERAGE": int(kind == "AVERAGE"), "IS_ROOT": int(kind == "SQRT"),
        "IS_MAX": int(kind == "MAX"), "IS_LAST": int(kind == "LAST"),
    }  # fmt: skip


def _ends(offsets: Array, kind: str) -> Array:
    """The LAST or FIRST row of each sequence; -1 for one without rows."""
    return np.where(np.diff(offsets), offsets[1:] - 1 if kind == "LAST" else offsets[:-1], -1)


def _divisor(lengths: Array, kind: str) -> Array:
    at_least_one = np.maximum(lengths, 1)
    return np.sqrt(at_least_one) if kind == "SQRT" else at_least_one


def put_highest(dx: Array, index: Array, g: Array, full: Array) -> None:
    """Write zeros, with each gradient where the largest element was."""
    dx[...] = 0
    dx[index[full], np.arange(dx.shape[1])] = g[full]


@grad_op("sequence_pool_grad", dtype_slot="Out@GRAD", cuda=FLOATS)
def sequence_pool_grad(b: Binder) -> None:
    """dX = each row's share of its sequence's gradient."""
    g, dx, kind = b["Out@GRAD"], b["X@GRAD"], b.attr("pooltype", "AVERAGE")
    offsets, width = offsets_of(b), product(dx.shape[1:])
    lengths = np.diff(offsets)
    full, rows = np.flatnonzero(lengths), owners(lengths)
    if kind in ("LAST", "FIRST"):
        if len(full) < len(lengths):
            kept = b.tmp((len(full), *g.shape[1:]), g.dtype)
            verbs.gather(b, g, full, kept)
            g = kept
        return verbs.scatter(b, g, _ends(offsets, kind)[full], dx, clear=True)
    if kind == "SUM":
        return verbs.gather(b, g, rows, dx)
    if b.on_cuda:
        of, name, numbers = row_maps.on_device(b, rows), ctype(dx.dtype), np.int64(width)
        if kind == "MAX":
            b.require(b["MaxIndex"] is not None, "sequence_pool_grad needs Input(MaxIndex) where the pooltype is MAX.")
            return by_rows(b, CUDA, f"returned<{name}>", len(dx), width, g, b["MaxIndex"], of, dx, numbers)
        args = row_maps.on_device(b, offsets), dx, np.int32(_DIVIDED[kind])
        return by_rows(b, CUDA, f"shares<{name}>", len(dx), width, g, of, *args, numbers)
    if kind == "MAX":
        index, g = (reading(b, x, (len(g), width)) for x in (b["MaxIndex"], g))
        flat_dx = writing(b, dx, (len(dx), width))
        b(put_highest, flat_dx, index, g, full)
        return written(b, dx, flat_dx)
    share = b.like(g)
    b(np.divide, g, column(_divisor(lengths, kind), g), out=share)
    return emit_rows(b, share, rows, dx)


@kernel("sequence_pool", place="cuda", dtypes=FLOATS)
def sequence_pool_on_cuda(b: Binder) -> None:
    """Sums and maxima by the threads of a line, the first and last rows by a map."""
    x, out, index, kind, pad = b["X"], b["Out"], b["MaxIndex"], b.attr("pooltype"), b.attr("pad_value")
    offsets = offsets_of(b)
    if kind == "MAX":
        if out.size:
            width = product(x.shape[1:])
            index = row_maps.NO_ARRAY if index is None else index
            args = x, row_maps.on_device(b, offsets), out, index, np.float64(pad)
            name, longest = f"highest<{ctype(x.dtype)}>", int(np.diff(offsets).max())
            row_maps.together(b, CUDA, name, out.size, longest, width, *args, np.int64(width))
        return
    if index is not None:
        fill(b, index)
    if kind in _DIVIDED:
        row_maps.add_parts(b, x, offsets, out, empty=pad, by=_DIVIDED[kind])
    else:
        row_maps.gather(b, x, _ends(offsets, kind), out, b.table(np.array([pad], out.dtype)))


SOFTMAX = Source(__file__, "softmax.cu", typed(("sequence_softmax sequence_softmax_grad", FLOATS)))


def _softmax_infer(c: Context) -> None:
    x = c["X"]
    c.require(
        product(x.shape[1:]) in (1, -1),
        "The width of each timestep in Input(X) of sequence_softmax should be 1.",
        expected="[n, 1] or [n]", received=list(x.shape), late=True,
    )  # fmt: skip
    require_lod(c)
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def _to_rows(b: Binder, ufunc: np.ufunc, x: Array) -> Array:
    """For each row what its sequence's rows reduce to."""
    offsets = offsets_of(b)
    each, out = b.tmp((len(offsets) - 1,), x.dtype), b.tmp(x.shape, x.dtype)
    emit_reduce(b, ufunc, x, offsets, each)
    emit_rows(b, each, owners(np.diff(offsets)), out)
    return out


@op(
    "sequence_softmax",
    inputs={"X: float[n, 1] lod | float[n] lod": "logits"},
    outputs={"Out": "probabilities, like X"},
    attrs={"data_format": Attr("string", "AnyLayout", "ignored (compatibility)")},
    cost="5 * X",
    infer=_softmax_infer,
    dtypes=FLOATS,
    grad=default_grad("X", "Out", "Out@GRAD"),
    cuda=FLOATS,
)
def sequence_softmax(b: Binder) -> None:
    """Out = exp(X - max) / sum(exp(X - max)), with the maximum and the sum of each sequence of the last level.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sequence_softmax", {"X": ([[1.0], [5.0], [5.0]], [[1, 2]])})["Out"].array.ravel()
        array([1. , 0.5, 0.5])

    Source: Fluid's sequence_softmax_op.
    """
    if b.on_cuda:
        return _along(b, "sequence_softmax", b["X"], b["Out"])
    rows = (len(b["X"]),)
    x, out = reading(b, b["X"], rows), writing(b, b["Out"], rows)
    t = apply(b, np.subtract, x, _to_rows(b, np.maximum, x))
    b(np.exp, t, out=t)
    b(np.divide, t, _to_rows(b, np.add, t), out=out)
    return written(b, b["Out"], out)


@grad_op("sequence_softmax_grad", dtype_slot="Out@GRAD", cuda=FLOATS)
def sequence_softmax_grad(b: Binder) -> None:
    """dX = Out · (dOut - the sum of dOut · Out over the sequence)."""
    if b.on_cuda:
        return _along(b, "sequence_softmax_grad", b["Out"], b["Out@GRAD"], b["X@GRAD"])
    rows = (len(b["X"]),)
    out, g, dx = reading(b, b["Out"], rows), reading(b, b["Out@GRAD"], rows), writing(b, b["X@GRAD"], rows)
    t = apply(b, np.multiply, out, g)
    b(np.subtract, g, _to_rows(b, np.add, t), out=t)
    b(np.multiply, t, out, out=dx)
    return written(b, b["X@GRAD"], dx)


def _along(b: Binder, name: str, *operands: Array) -> None:
    """Emit a kernel over the sequences of X; the last operand is written."""
    offsets, out = offsets_of(b), operands[-1]
    if out.size:
        args = (*operands[:-1], on_device(b, offsets), out)
        longest = int(np.diff(offsets).max())
        together(b, SOFTMAX, f"{name}<{ctype(out.dtype)}>", len(offsets) - 1, longest, 1, *args)
