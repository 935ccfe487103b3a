"""cross_entropy2: the loss of probabilities against class numbers, with what its gradient needs kept beside it."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.emit import FLOATS, apply, reading, writing, written, zeros
from fluidnb_kernels.loss.cross_entropy import LOG_OF_ZERO, label_rule, put, spread_losses, take_losses
from fluidnb_kernels.loss.launch import wanted
from fluidnb_kernels.loss.softmax_with_cross_entropy import places, take


def _infer(c: Context) -> None:
    x = c["X"]
    label_rule(c, "X")
    for slot in ("Y", "MatchX"):
        c.set(slot, (*x.shape[:-1], 1), x.dtype, c.lod("X"))
    c.set("XShape", (0, *x.shape), x.dtype, c.lod("X"))


def _labels(b: Binder, n: int, classes: int) -> tuple[Array, Array]:
    at, counts = b.tmp((n,), np.int64), b.tmp((n,), bool)
    b(places, reading(b, b["Label"], (n,)), (n, classes, 1), b.attr("ignore_index", -100), at, counts)
    return at, counts


@op(
    "cross_entropy2",
    inputs={"X: float[…, classes]": "probabilities", "Label: int64[…, 1]": ""},
    outputs={
        "Y": "the loss of each row [..., 1]",
        "XShape~": "no elements: [0, the shape of X]",
        "MatchX~": "the probability of each row's label",
    },
    attrs={"ignore_index": Attr("int", -100, "label of rows whose loss is 0")},
    cost="Y",
    infer=_infer,
    grad=default_grad("Label", "MatchX", "XShape", "Y@GRAD", wrt=["X"], type="cross_entropy_grad2"),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def cross_entropy2(b: Binder) -> None:
    """MatchX = X[Label]; Y = -log MatchX, where log 0 counts as -1e20.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cross_entropy2", {"X": [[0.5, 0.5]], "Label": [[1]]})["Y"].round(4)
        array([[0.6931]])

    Source: Fluid's cross_entropy2_op.
    """
    if b.on_cuda:  # NaN where a label is no class
        return take_losses(b, b["X"], b["Y"], wanted(b, "MatchX"))
    x, y = b["X"], b["Y"]
    at, counts = _labels(b, y.size, x.shape[-1])
    match = b.tmp(at.shape, x.dtype)
    b(take, reading(b, x, (x.size,)), at, counts, match)
    if b.wants("MatchX"):
        b(np.copyto, b["MatchX"], match.reshape(b["MatchX"].shape))
    t = apply(b, np.maximum, apply(b, np.log, match), b.const(LOG_OF_ZERO, x.dtype))
    b(np.negative, t, out=t)
    b(np.copyto, t, b.const(0, x.dtype), where=apply(b, np.logical_not, counts))
    b(np.copyto, y, t.reshape(y.shape))


def _grad_infer(c: Context) -> None:
    c.set("X@GRAD", c["XShape"].shape[1:], c["Y@GRAD"].dtype, c.lod("XShape"))


@grad_op("cross_entropy_grad2", infer=_grad_infer, dtype_slot="Y@GRAD", cuda=FLOATS)
def cross_entropy_grad2(b: Binder) -> None:
    """dX = -dY / MatchX at the label, 0 elsewhere and in ignored rows."""
    if b.on_cuda:  # NaN where a label is no class
        return spread_losses(b, b["MatchX"], b["Y@GRAD"], b["X@GRAD"], True)
    dx, g = b["X@GRAD"], b["Y@GRAD"]
    at, counts = _labels(b, g.size, dx.shape[-1])
    t = apply(b, np.divide, reading(b, g, at.shape), reading(b, b["MatchX"], at.shape))
    b(np.negative, t, out=t)
    b(np.copyto, t, b.const(0, g.dtype), where=apply(b, np.logical_not, counts))
    target = writing(b, dx, (dx.size,))
    zeros(b, target)
    b(put, target, at, t)
    written(b, dx, target)
