"""bce_loss and nll_loss: losses of probabilities, and of their logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.compute_dtype import wide_dtype
from fluidnb_kernels.cuda.grid import THREADS
from fluidnb_kernels.cuda.row_grid import by_rows
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.loss.class_labels import check_classes
from fluidnb_kernels.loss.launch import LINES, NOTHING, terms, wanted
from fluidnb_kernels.rules import agree, same_shape, whole_numbers

Array = Any

_LEAST = -100.0  # what the logarithm of 0 counts as
_BLOCKS = 1024  # that add up losses on a GPU, each for itself


def _bce_infer(c: Context) -> None:
    same_shape(c, "X", "Label")
    c.set("Out", c["X"].shape, c["X"].dtype, c.lod("X"))


@op(
    "bce_loss",
    inputs={"X: float": "probabilities, any shape", "Label: float": "0 to 1, same shape"},
    outputs={"Out": "the loss of each element"},
    cost="6 * X",
    infer=_bce_infer,
    grad=default_grad("X", "Label", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
)
def bce_loss(b: Binder) -> None:
    """Out = -Label · log(X) - (1 - Label) · log(1 - X), where no logarithm counts as less than -100.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("bce_loss", {"X": [0.5, 0.0], "Label": [1.0, 1.0]})["Out"].round(3)
        array([  0.693, 100.   ])

    Source: Paddle's bce_loss_op.
    """
    x, label = b["X"], b["Label"]
    one, least = b.const(1, x.dtype), b.const(_LEAST, x.dtype)
    yes = apply(b, np.maximum, apply(b, np.log, x), least)
    no = apply(b, np.maximum, apply(b, np.log, apply(b, np.subtract, one, x)), least)
    t = apply(b, np.multiply, apply(b, np.subtract, label, one), no)
    b(np.multiply, label, yes, out=yes)
    b(np.subtract, t, yes, out=b["Out"])


@grad_op("bce_loss_grad")
def bce_loss_grad(b: Binder) -> None:
    """dX = dOut · (X - Label) / max(X · (1 - X), 1e-12)."""
    x = b["X"]
    t = apply(b, np.multiply, apply(b, np.subtract, b.const(1, x.dtype), x), x)
    b(np.maximum, t, b.const(1e-12, x.dtype), out=t)
    u = apply(b, np.divide, apply(b, np.subtract, x, b["Label"]), t)
    b(np.multiply, u, b["Out@GRAD"], out=b["X@GRAD"])


def _nll_infer(c: Context) -> None:
    x, label = c["X"], c["Label"]
    whole_numbers(c, "Label")
    c.require(
        x.ndim in (2, 4) and agree(label.shape, (x.shape[0], *x.shape[2:])),
        "Label of nll_loss does not fit its X.",
        expected="X [N, C] or [N, C, H, W] with one label for each row or pixel",
        received=f"X {list(x.shape)}, Label {list(label.shape)}",
    )  # fmt: skip
    if c.has("Weight"):
        c.require(
            agree(c["Weight"].shape, x.shape[1:2]), "Weight of nll_loss has one number for each class.",
            expected=list(x.shape[1:2]), received=list(c["Weight"].shape),
        )  # fmt: skip
    c.set("Out", label.shape if c.attr("reduction") == "none" else (1,), x.dtype)
    c.set("Total_weight", (1,), x.dtype)


def shares(label: Array, weight: Array | None, ignored: int, classes: int, dtype: Any) -> tuple[Array, Array]:
    """The class of each label and what it counts.

    Args:
        label: int64, any shape.
        weight: [classes], or None for 1 each.

    Returns:
        (classes, 0 for those ignored; weights of the labels' shape).

    Raises:
        EnforceNotMet: a label is no class.

    Example:
        >>> shares(np.array([1, -1]), None, -1, 2, "float32")
        (array([1, 0]), array([1., 0.], dtype=float32))
    """
    kept = label != ignored
    check_classes(label[kept], classes)
    found = np.where(kept, label, 0)
    each = np.ones(label.shape, dtype) if weight is None else weight[found]
    return found, np.where(kept, each, 0).astype(dtype)


def nll(x: Array, label: Array, weight: Array | None, ignored: int, reduction: str, out: Array, total: Array) -> None:
    """Write the negative log likelihood.

    Args:
        x: logarithms of probabilities [N, C, ...].
        label: classes [N, ...].
        weight: [C] or None.
        out: written, the shape of the labels, or one number.
        total: written, one number: the sum of the weights.

    Example:
        >>> out, total = np.zeros(1), np.zeros(1)
        >>> nll(np.log([[0.5, 0.5]]), np.array([1]), None, -100, "mean", out, total); out.round(3)
        array([0.693])
    """
    found, each = shares(label, weight, ignored, x.shape[1], x.dtype)
    losses = -np.take_along_axis(x, found[:, None], 1)[:, 0] * each
    total[...] = each.sum()
    if reduction == "none":
        out[...] = losses
    else:
        out[...] = losses.sum() / (1 if reduction == "sum" or not total.item() else total.item())


@op(
    "nll_loss",
    inputs={
        "X: float[N, C] | float[N, C, H, W]": "logarithms of probabilities",
        "Label: int64[N] | int64[N, H, W]": "classes",
        "Weight?: float[C]": "what each class counts",
    },
    outputs={"Out": "[1], or the loss of each label", "Total_weight": "[1]: the sum of the labels' weights"},
    attrs={
        "ignore_index": Attr("long", -100, "a label without loss"),
        "reduction": Attr("string", "mean", "mean, sum or none", enum=("mean", "sum", "none")),
    },
    cost="Label",
    infer=_nll_infer,
    grad=default_grad("X", "Label", "Weight", "Total_weight", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
)  # fmt: skip
def nll_loss(b: Binder) -> None:
    """Out = -Weight[Label] · X[Label], summed, divided by the sum of the weights, or for each label.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("nll_loss", {"X": np.log([[0.25, 0.75]]), "Label": [1]})["Out"].round(3)
        array([0.288])

    Source: Paddle's nll_loss_op.
    """
    x = b["X"]
    total = b["Total_weight"] if b.wants("Total_weight") else b.tmp((1,), x.dtype)
    b(nll, x, b["Label"], b["Weight"], b.attr("ignore_index"), b.attr("reduction"), b["Out"], total)


def nll_back(
    grad: Array, label: Array, weight: Array | None, ignored: int, reduction: str, total: Array, out: Array
) -> None:
    """Write the gradient of `nll`.

    Args:
        label: see `nll`.
        weight: see `nll`.
        ignored: see `nll`.
        reduction: see `nll`.

    Example:
        >>> out = np.ones((1, 2)); nll_back(np.ones(1), np.array([1]), None, -100, "sum", np.ones(1), out); out
        array([[ 0., -1.]])
    """
    found, each = shares(label, weight, ignored, out.shape[1], out.dtype)
    scale = grad if reduction == "none" else grad.item() / (total.item() if reduction == "mean" and total.item() else 1)
    out.fill(0)
    np.put_along_axis(out, found[:, None], (-each * scale)[:, None], 1)


@grad_op("nll_loss_grad", dtype_slot="X")
def nll_loss_grad(b: Binder) -> None:
    """dX = -Weight[Label] · dOut at the label's class, divided as the loss was."""
    sizes = b.attr("ignore_index"), b.attr("reduction"), b["Total_weight"], b["X@GRAD"]
    b(nll_back, b["Out@GRAD"], b["Label"], b["Weight"], *sizes)


@kernel("bce_loss", place="cuda", dtypes=FLOATS)
def bce_loss_on_cuda(b: Binder) -> None:
    """One launch."""
    terms(b, "bce_loss", [b["X"], b["Label"]], b["Out"])


@kernel("bce_loss_grad", place="cuda", dtypes=FLOATS)
def bce_loss_grad_on_cuda(b: Binder) -> None:
    """One launch."""
    terms(b, "bce_loss_grad", [b["X"], b["Label"], b["Out@GRAD"]], b["X@GRAD"])


def _labels_on_cuda(b: Binder, x: Array) -> tuple[Array, Array, list[np.int64]]:
    """Labels, weights, and the class layout: ignored index, number of classes, stride."""
    weight = of_dtype(b, b["Weight"], x.dtype) if b.has("Weight") else NOTHING
    sizes = b.attr("ignore_index"), x.shape[1], int(np.prod(x.shape[2:], dtype=np.int64))
    return of_dtype(b, b["Label"], np.int64), weight, [np.int64(n) for n in sizes]


@kernel("nll_loss", place="cuda", dtypes=FLOATS)
def nll_loss_on_cuda(b: Binder) -> None:
    """Blocks that add up losses, and one that adds up those sums; NaN where a label is no class."""
    x, out, reduction = b["X"], b["Out"], b.attr("reduction")
    labels, weight, sizes = _labels_on_cuda(b, x)
    n, each = labels.size, reduction == "none"
    blocks = min(_BLOCKS, -(-n // THREADS))
    parts, t = b.tmp((2 * max(blocks, 1),), wide_dtype(x.dtype)), ctype(x.dtype)
    if n:
        operands = x, labels, weight, out if each else NOTHING, parts, *sizes
        b(LINES[f"nll_loss<{t}>"], (blocks,), (THREADS,), 0, *operands, np.int64(n))
    if b.wants("Total_weight") or not each:
        results = NOTHING if each else out, wanted(b, "Total_weight")
        counts = np.int32(reduction == "mean"), np.int32(blocks)
        b(LINES[f"nll_total<{t}>"], (1,), (THREADS,), 0, parts, *results, *counts)


@kernel("nll_loss_grad", place="cuda", dtypes=FLOATS)
def nll_loss_grad_on_cuda(b: Binder) -> None:
    """One launch; NaN for all classes where a label is none."""
    g, dx, reduction = b["Out@GRAD"], b["X@GRAD"], b.attr("reduction")
    labels, weight, sizes = _labels_on_cuda(b, dx)
    total = of_dtype(b, b["Total_weight"], dx.dtype) if reduction == "mean" else NOTHING
    rows, inner, step = dx.shape[0] * dx.shape[1], int(sizes[2]), np.int64(reduction == "none")
    operands = g, labels, weight, total, dx, *sizes, step
    by_rows(b, LINES, f"nll_loss_grad<{ctype(dx.dtype)}>", rows, inner, *operands)
