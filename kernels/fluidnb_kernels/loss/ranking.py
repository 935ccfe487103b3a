"""rank_loss, margin_rank_loss and bpr_loss: losses of what should come before what."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.activation.smooth import logistic
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.line_grid import each_line
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.loss.cross_entropy import label_rule
from fluidnb_kernels.loss.launch import LINES, terms, wanted
from fluidnb_kernels.loss.softmax_with_cross_entropy import places, take
from fluidnb_kernels.rules import same_shape
from fluidnb_kernels.views import reading, writing, written

Array = Any


def _pair_infer(c: Context) -> None:
    for slot in ("Left", "Right"):
        same_shape(c, "Label", slot)
    c.set("Out", c["Left"].shape, c["Left"].dtype, c.lod("Left"))


@op(
    "rank_loss",
    inputs={
        "Label: float[N, 1]": "1 where left should come first, 0 where right",
        "Left: float[N, 1]": "scores",
        "Right: float[N, 1]": "scores",
    },
    outputs={"Out": "the loss of each pair"},
    cost="4 * Out",
    infer=_pair_infer,
    grad=default_grad("Label", "Left", "Right", "Out@GRAD", wrt=["Left", "Right"]),
    dtypes=FLOATS,
)
def rank_loss(b: Binder) -> None:
    """Out = log(1 + exp(Left - Right)) - Label · (Left - Right).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("rank_loss", {"Label": [[1.0]], "Left": [[0.0]], "Right": [[0.0]]})["Out"].round(4)
        array([[0.6931]])

    Source: Burges et al., RankNet (2005); Fluid's rank_loss_op.
    """
    gap = apply(b, np.subtract, b["Left"], b["Right"])
    t = apply(b, np.logaddexp, gap, b.const(0, gap.dtype))
    b(np.subtract, t, apply(b, np.multiply, b["Label"], gap), out=b["Out"])


@grad_op("rank_loss_grad", dtype_slot="Left")
def rank_loss_grad(b: Binder) -> None:
    """dLeft = dOut · (1 / (1 + exp(Right - Left)) - Label); dRight = -dLeft."""
    s = logistic(b, apply(b, np.subtract, b["Left"], b["Right"]))
    t = apply(b, np.multiply, apply(b, np.subtract, s, b["Label"]), b["Out@GRAD"])
    if b.wants("Left@GRAD"):
        b(np.copyto, b["Left@GRAD"], t)
    if b.wants("Right@GRAD"):
        b(np.negative, t, out=b["Right@GRAD"])


def _margin_infer(c: Context) -> None:
    for slot in ("X1", "X2"):
        same_shape(c, "Label", slot)
    for slot in ("Activated", "Out"):
        c.set(slot, c["Label"].shape, c["X1"].dtype, c.lod("X1"))


@op(
    "margin_rank_loss",
    inputs={
        "X1: float[N, 1]": "scores",
        "X2: float[N, 1]": "scores",
        "Label: float[N, 1]": "1 where X1 should be larger, -1 where X2",
    },
    outputs={"Activated~": "1 where the loss is not 0, else 0", "Out": "the loss of each pair"},
    attrs={"margin": Attr("float", 0.0, "by how much it should be larger")},
    cost="4 * Out",
    infer=_margin_infer,
    grad=default_grad("Label", "Activated", "Out@GRAD", wrt=["X1", "X2"]),
    dtypes=FLOATS,
)
def margin_rank_loss(b: Binder) -> None:
    """Out = max(0, margin - Label · (X1 - X2)).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("margin_rank_loss", {"X1": [[1.0]], "X2": [[3.0]], "Label": [[1.0]]}, {"margin": 0.5})["Out"]
        array([[2.5]])

    Source: Fluid's margin_rank_loss_op.
    """
    x, zero = b["X1"], b.const(0, b["X1"].dtype)
    t = apply(b, np.multiply, apply(b, np.subtract, x, b["X2"]), b["Label"])
    b(np.subtract, b.const(b.attr("margin"), x.dtype), t, out=t)
    b(np.maximum, t, zero, out=b["Out"])
    if b.wants("Activated"):
        b(np.greater, t, zero, out=b["Activated"])


def _margin_grad_infer(c: Context) -> None:
    active = c["Activated"]
    for slot in ("X1@GRAD", "X2@GRAD"):
        c.set(slot, active.shape, active.dtype)


@grad_op("margin_rank_loss_grad", infer=_margin_grad_infer, dtype_slot="Activated")
def margin_rank_loss_grad(b: Binder) -> None:
    """dX2 = dOut · Activated · Label; dX1 = -dX2."""
    t = apply(b, np.multiply, apply(b, np.multiply, b["Out@GRAD"], b["Activated"]), b["Label"])
    if b.wants("X2@GRAD"):
        b(np.copyto, b["X2@GRAD"], t)
    if b.wants("X1@GRAD"):
        b(np.negative, t, out=b["X1@GRAD"])


def _bpr_infer(c: Context) -> None:
    x = c["X"]
    label_rule(c, "X")
    c.require(x.shape[-1] != 1, "bpr_loss needs at least two classes.", expected="> 1", received=x.shape[-1])
    c.set("Y", (*x.shape[:-1], 1), x.dtype, c.lod("X"))


def _gaps(b: Binder) -> tuple[Array, Array]:
    """Emit each score less that of the row's label, and the places of the labels."""
    x = b["X"]
    n, classes = x.size // x.shape[-1], x.shape[-1]
    at, counts, own = b.tmp((n,), np.int64), b.tmp((n,), bool), b.tmp((n,), x.dtype)
    b(places, reading(b, b["Label"], (n,)), (n, classes, 1), None, at, counts)
    b(take, reading(b, x, (x.size,)), at, counts, own)
    return apply(b, np.subtract, reading(b, x, (n, classes)), own.reshape(n, 1)), at


@op(
    "bpr_loss",
    inputs={"X: float[N, classes]": "scores", "Label: int64[N, 1]": "the class that should come first"},
    outputs={"Y": "the loss of each row [N, 1]"},
    cost="4 * X",
    infer=_bpr_infer,
    grad=default_grad("X", "Label", "Y@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
)
def bpr_loss(b: Binder) -> None:
    """Y = the mean over all classes j but the label of log(1 + exp(X[j] - X[label])).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("bpr_loss", {"X": [[1.0, 1.0, 1.0]], "Label": [[0]]})["Y"].round(4)
        array([[0.6931]])

    Source: Hidasi et al., Session-based recommendations (2016); Fluid's bpr_loss_op.
    """
    x, y = b["X"], b["Y"]
    gaps, _ = _gaps(b)
    total = b.tmp((len(gaps), 1), x.dtype)
    b(np.add.reduce, apply(b, np.logaddexp, gaps, b.const(0, x.dtype)), 1, None, total, True)
    b(np.subtract, total, b.const(np.log(2.0), x.dtype), out=total)  # the label's own term
    out = writing(b, y, total.shape)
    b(np.divide, total, b.const(x.shape[-1] - 1, x.dtype), out=out)
    written(b, y, out)


def balance(slopes: Array, at: Array) -> None:
    """Give the label of each row the slope that makes their sum zero.

    Args:
        slopes: [n, classes], changed.

    Example:
        >>> s = np.array([[0.5, 0.25, 0.25]]); balance(s, np.array([0])); s
        array([[-0.5 ,  0.25,  0.25]])
    """
    flat = slopes.reshape(-1)
    flat[at] = 0
    flat[at] = -slopes.sum(1)


@grad_op("bpr_loss_grad", dtype_slot="X")
def bpr_loss_grad(b: Binder) -> None:
    """dX[j] = dY / (classes - 1) / (1 + exp(X[label] - X[j])); at the label less the sum of all others."""
    x, dx = b["X"], b["X@GRAD"]
    gaps, at = _gaps(b)
    slopes = logistic(b, gaps)
    b(balance, slopes, at)
    b(np.divide, slopes, b.const(x.shape[-1] - 1, x.dtype), out=slopes)
    out = writing(b, dx, slopes.shape)
    b(np.multiply, slopes, reading(b, b["Y@GRAD"], (len(gaps), 1)), out=out)
    written(b, dx, out)


@kernel("rank_loss", place="cuda", dtypes=FLOATS)
def rank_loss_on_cuda(b: Binder) -> None:
    """One launch."""
    left = b["Left"]
    terms(b, "rank_loss", [of_dtype(b, b["Label"], left.dtype), left, b["Right"]], b["Out"])


@kernel("rank_loss_grad", place="cuda", dtypes=FLOATS)
def rank_loss_grad_on_cuda(b: Binder) -> None:
    """One launch for both gradients."""
    left = b["Left"]
    operands = [of_dtype(b, b["Label"], left.dtype), left, b["Right"], b["Out@GRAD"]]
    terms(b, "rank_loss_grad", operands, wanted(b, "Left@GRAD"), wanted(b, "Right@GRAD"))


@kernel("margin_rank_loss", place="cuda", dtypes=FLOATS)
def margin_rank_loss_on_cuda(b: Binder) -> None:
    """One launch."""
    operands = [b["X1"], b["X2"], b["Label"]]
    terms(b, "margin_rank_loss", operands, b["Out"], wanted(b, "Activated"), b.attr("margin"))


@kernel("margin_rank_loss_grad", place="cuda", dtypes=FLOATS)
def margin_rank_loss_grad_on_cuda(b: Binder) -> None:
    """One launch for both gradients."""
    operands = [b["Activated"], b["Label"], b["Out@GRAD"]]
    terms(b, "margin_rank_loss_grad", operands, wanted(b, "X2@GRAD"), wanted(b, "X1@GRAD"))


@kernel("bpr_loss", place="cuda", dtypes=FLOATS)
def bpr_loss_on_cuda(b: Binder) -> None:
    """One launch; the loss of a label that is no class is NaN."""
    x, labels = b["X"], of_dtype(b, b["Label"], np.int64)
    classes = x.shape[-1]
    each_line(b, LINES, f"bpr_loss<{ctype(x.dtype)}>", x.size // classes, classes, 1, x, labels, b["Y"])


@kernel("bpr_loss_grad", place="cuda", dtypes=FLOATS)
def bpr_loss_grad_on_cuda(b: Binder) -> None:
    """One launch; NaN in rows whose label is no class."""
    x, labels = b["X"], of_dtype(b, b["Label"], np.int64)
    classes = x.shape[-1]
    operands = x, labels, b["Y@GRAD"], b["X@GRAD"]
    each_line(b, LINES, f"bpr_loss_grad<{ctype(x.dtype)}>", x.size // classes, classes, 1, *operands)
