"""sequence_softmax: probabilities within each sequence."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb_kernels.cuda import Source, ctype, typed
from fluidnb_kernels.emit import FLOATS, apply, reading, writing, written
from fluidnb_kernels.sequence.row_maps import on_device, together
from fluidnb_kernels.sequences import emit_reduce, emit_rows, offsets_of, owners, require_lod

CUDA = Source(__file__, "softmax.cu", typed(("sequence_softmax sequence_softmax_grad", FLOATS)))


def _infer(c: Context) -> None:
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
    infer=_infer,
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
        together(b, CUDA, f"{name}<{ctype(out.dtype)}>", len(offsets) - 1, longest, 1, *args)
