"""rank_loss, margin_rank_loss and bpr_loss: losses of what should come before what."""

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.activation.smooth import log_1p_exp, logistic
from fluidnb_kernels.arithmetic import Operand, values
from fluidnb_kernels.cuda import ctype, each_line, of_dtype
from fluidnb_kernels.emit import FLOATS, apply, reading, writing, written
from fluidnb_kernels.loss.cross_entropy import drop_ignored, label_rule, places
from fluidnb_kernels.loss.launch import LINES, pointwise
from fluidnb_kernels.rules import alike


@pointwise(
    "rank_loss", "Left Right Label", "Out",
    inputs={
        "Label: float[N, 1]": "1 where left should come first, 0 where right",
        "Left: float[N, 1]": "scores",
        "Right: float[N, 1]": "scores",
    },
    outputs={"Out": "the loss of each pair"},
    cost="4 * Out",
    grad=default_grad("Label", "Left", "Right", "Out@GRAD", wrt=["Left", "Right"]),
)  # fmt: skip
def rank_loss(left: Operand, right: Operand, label: Operand) -> Operand:
    """Out = log(1 + exp(Left - Right)) - Label · (Left - Right).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("rank_loss", {"Label": [[1.0]], "Left": [[0.0]], "Right": [[0.0]]})["Out"].round(4)
        array([[0.6931]])

    Source: Burges et al., RankNet (2005); Fluid's rank_loss_op.
    """
    gap = left - right
    return log_1p_exp(gap) - label * gap


@pointwise("rank_loss_grad", "Left Right Label Out@GRAD", "Left@GRAD Right@GRAD", dtype_slot="Left")
def rank_loss_grad(left: Operand, right: Operand, label: Operand, g: Operand) -> Iterator[Operand]:
    """dLeft = dOut · (1 / (1 + exp(Right - Left)) - Label); dRight = -dLeft."""
    t = (logistic(left - right) - label) * g
    yield t
    yield -t


@pointwise(
    "margin_rank_loss", "X1 X2 Label", "Out Activated", lambda b: [b.attr("margin")],
    inputs={
        "X1: float[N, 1]": "scores",
        "X2: float[N, 1]": "scores",
        "Label: float[N, 1]": "1 where X1 should be larger, -1 where X2",
    },
    outputs={"Activated~": "1 where the loss is not 0, else 0", "Out": "the loss of each pair"},
    attrs={"margin": Attr("float", 0.0, "by how much it should be larger")},
    cost="4 * Out",
    grad=default_grad("Label", "Activated", "Out@GRAD", wrt=["X1", "X2"]),
)  # fmt: skip
def margin_rank_loss(x: Operand, y: Operand, label: Operand) -> Iterator[Operand]:
    """Out = max(0, margin - Label · (X1 - X2)).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("margin_rank_loss", {"X1": [[1.0]], "X2": [[3.0]], "Label": [[1.0]]}, {"margin": 0.5})["Out"]
        array([[2.5]])

    Source: Fluid's margin_rank_loss_op.
    """
    t = x.attr("margin") - (x - y) * label
    yield np.maximum(t, 0)
    yield t > 0


@pointwise(
    "margin_rank_loss_grad", "Activated Label Out@GRAD", "X2@GRAD X1@GRAD",
    infer=alike("Activated Label Out@GRAD", "X1@GRAD X2@GRAD"), dtype_slot="Activated",
)  # fmt: skip
def margin_rank_loss_grad(active: Operand, label: Operand, g: Operand) -> Iterator[Operand]:
    """dX2 = dOut · Activated · Label; dX1 = -dX2."""
    t = g * active * label
    yield t
    yield -t


def _bpr_infer(c: Context) -> None:
    x = c["X"]
    label_rule(c, "X")
    c.require(x.shape[-1] != 1, "bpr_loss needs at least two classes.", expected="> 1", received=x.shape[-1])
    c.set("Y", (*x.shape[:-1], 1), x.dtype, c.lod("X"))


def _gaps(b: Binder) -> tuple[Array, Array]:
    """Emit each score less that of the row's label, and the places of the labels."""
    x = b["X"]
    n, classes = x.size // x.shape[-1], x.shape[-1]
    labels, own = reading(b, b["Label"], (n,)), b.tmp((n,), x.dtype)
    drop_ignored(b, labels, classes, None)
    at = places(b, labels, (n, classes, 1))
    b(reading(b, x, (x.size,)).take, at, None, own, "clip")
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
    cuda=FLOATS,
)
def bpr_loss(b: Binder) -> None:
    """Y = the mean over all classes j but the label of log(1 + exp(X[j] - X[label])).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("bpr_loss", {"X": [[1.0, 1.0, 1.0]], "Label": [[0]]})["Y"].round(4)
        array([[0.6931]])

    Source: Hidasi et al., Session-based recommendations (2016); Fluid's bpr_loss_op.
    """
    x, y, classes = b["X"], b["Y"], b["X"].shape[-1]
    if b.on_cuda:  # NaN where a label is no class
        labels = of_dtype(b, b["Label"], np.int64)
        return each_line(b, LINES, f"bpr_loss<{ctype(x.dtype)}>", x.size // classes, classes, 1, x, labels, y)
    gaps, _ = _gaps(b)
    total = b.tmp((len(gaps), 1), x.dtype)
    b(np.add.reduce, apply(b, np.logaddexp, gaps, b.const(0, x.dtype)), 1, None, total, True)
    b(np.subtract, total, b.const(np.log(2.0), x.dtype), out=total)  # the label's own term
    out = writing(b, y, total.shape)
    b(np.divide, total, b.const(classes - 1, x.dtype), out=out)
    written(b, y, out)


def balance(slopes: Array, at: Array) -> None:
    """Give the label of each row the slope that makes their sum zero."""
    flat = slopes.reshape(-1)
    flat[at] = 0
    flat[at] = -slopes.sum(1)


@grad_op("bpr_loss_grad", dtype_slot="X", cuda=FLOATS)
def bpr_loss_grad(b: Binder) -> None:
    """dX[j] = dY / (classes - 1) / (1 + exp(X[label] - X[j])); at the label less the sum of all others."""
    x, dx, classes = b["X"], b["X@GRAD"], b["X"].shape[-1]
    if b.on_cuda:  # NaN where a label is no class
        operands = x, of_dtype(b, b["Label"], np.int64), b["Y@GRAD"], dx
        return each_line(b, LINES, f"bpr_loss_grad<{ctype(x.dtype)}>", x.size // classes, classes, 1, *operands)
    gaps, at = _gaps(b)
    slopes = logistic(*values(b, gaps)).array
    b(balance, slopes, at)
    b(np.divide, slopes, b.const(classes - 1, x.dtype), out=slopes)
    out = writing(b, dx, slopes.shape)
    b(np.multiply, slopes, reading(b, b["Y@GRAD"], (len(gaps), 1)), out=out)
    written(b, dx, out)
