"""bce_loss, nll_loss and kldiv_loss: losses of probabilities, and of their logarithms."""

import math
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import Operand, values
from fluidnb_kernels.cuda import THREADS, by_rows, ctype, each, of_dtype, wide_dtype
from fluidnb_kernels.cuda.axis_reduction import Fold, fold
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.launch import LINES, NOTHING, TERMS, pointwise, terms, wanted
from fluidnb_kernels.rules import agree, check_classes, fits, same_shape, whole_numbers

_LEAST = -100.0  # the logarithm of 0
_BLOCKS = 1024  # that add up losses on a GPU


@pointwise(
    "bce_loss", "X Label", "Out",
    inputs={"X: float": "probabilities, any shape", "Label: float": "0 to 1, same shape"},
    outputs={"Out": "the loss of each element"},
    cost="6 * X",
    grad=default_grad("X", "Label", "Out@GRAD", wrt=["X"]),
)  # fmt: skip
def bce_loss(x: Operand, label: Operand) -> Operand:
    """Out = -Label · log(X) - (1 - Label) · log(1 - X), where no logarithm counts as less than -100.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("bce_loss", {"X": [0.5, 0.0], "Label": [1.0, 1.0]})["Out"].round(3)
        array([  0.693, 100.   ])

    Source: Paddle's bce_loss_op.
    """
    yes, no = np.maximum(np.log(x), _LEAST), np.maximum(np.log(1 - x), _LEAST)
    return (label - 1) * no - label * yes


@pointwise("bce_loss_grad", "X Label Out@GRAD", "X@GRAD")
def bce_loss_grad(x: Operand, label: Operand, g: Operand) -> Operand:
    """dX = dOut · (X - Label) / max(X · (1 - X), 1e-12)."""
    return (x - label) / np.maximum((1 - x) * x, 1e-12) * g


def _nll_infer(c: Context) -> None:
    x, label = c["X"], c["Label"]
    whole_numbers(c, "Label")
    c.require(
        x.ndim in (2, 4) and agree(label.shape, (x.shape[0], *x.shape[2:])),
        "Label of nll_loss does not fit its X.",
        expected="X [N, C] or [N, C, H, W] with one label for each row or pixel",
        received=f"X {list(x.shape)}, Label {list(label.shape)}",
    )  # fmt: skip
    fits(c, "Weight", x.shape[1:2], "Weight of nll_loss has one number for each class.")
    c.set("Out", label.shape if c.attr("reduction") == "none" else (1,), x.dtype)
    c.set("Total_weight", (1,), x.dtype)


def shares(label: Array, weight: Array | None, ignored: int, classes: int, dtype: Any) -> tuple[Array, Array]:
    """The class of each label (0 where it is ignored) and its weight."""
    kept = label != ignored
    check_classes(label[kept], classes)
    found = np.where(kept, label, 0)
    each = np.ones(label.shape, dtype) if weight is None else weight[found]
    return found, np.where(kept, each, 0).astype(dtype)


def nll(x: Array, label: Array, weight: Array | None, ignored: int, reduction: str, out: Array, total: Array) -> None:
    """Write the negative log likelihood of each label, or one number, from logarithms of probabilities [N, C, …]."""
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
    dtype_slot="X", cuda=FLOATS,
)  # fmt: skip
def nll_loss(b: Binder) -> None:
    """Out = -Weight[Label] · X[Label], summed, divided by the sum of the weights, or for each label.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("nll_loss", {"X": np.log([[0.25, 0.75]]), "Label": [1]})["Out"].round(3)
        array([0.288])

    Source: Paddle's nll_loss_op.
    """
    if b.on_cuda:  # blocks that add up losses, and one that adds up those sums; NaN where a label is no class
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
        return
    x = b["X"]
    total = b["Total_weight"] if b.wants("Total_weight") else b.tmp((1,), x.dtype)
    b(nll, x, b["Label"], b["Weight"], b.attr("ignore_index"), b.attr("reduction"), b["Out"], total)


def nll_back(
    grad: Array, label: Array, weight: Array | None, ignored: int, reduction: str, total: Array, out: Array
) -> None:
    """Write the gradient of `nll`."""
    found, each = shares(label, weight, ignored, out.shape[1], out.dtype)
    scale = grad if reduction == "none" else grad.item() / (total.item() if reduction == "mean" and total.item() else 1)
    out.fill(0)
    np.put_along_axis(out, found[:, None], (-each * scale)[:, None], 1)


@grad_op("nll_loss_grad", dtype_slot="X", cuda=FLOATS)
def nll_loss_grad(b: Binder) -> None:
    """dX = -Weight[Label] · dOut at the label's class, divided as the loss was."""
    if b.on_cuda:  # NaN for all classes where a label is none
        g, dx, reduction = b["Out@GRAD"], b["X@GRAD"], b.attr("reduction")
        labels, weight, sizes = _labels_on_cuda(b, dx)
        total = of_dtype(b, b["Total_weight"], dx.dtype) if reduction == "mean" else NOTHING
        rows, inner, step = dx.shape[0] * dx.shape[1], int(sizes[2]), np.int64(reduction == "none")
        operands = g, labels, weight, total, dx, *sizes, step
        return by_rows(b, LINES, f"nll_loss_grad<{ctype(dx.dtype)}>", rows, inner, *operands)
    settings = b.attr("ignore_index"), b.attr("reduction")
    b(nll_back, b["Out@GRAD"], b["Label"], b["Weight"], *settings, b["Total_weight"], b["X@GRAD"])


def _labels_on_cuda(b: Binder, x: Array) -> tuple[Array, Array, list[np.int64]]:
    """Labels, weights, and the class layout: ignored index, number of classes, stride."""
    weight = of_dtype(b, b["Weight"], x.dtype) if b.has("Weight") else NOTHING
    sizes = b.attr("ignore_index"), x.shape[1], int(np.prod(x.shape[2:], dtype=np.int64))
    return of_dtype(b, b["Label"], np.int64), weight, [np.int64(n) for n in sizes]


REDUCTIONS = ("none", "mean", "sum", "batchmean")


def _infer(c: Context) -> None:
    same_shape(c, "X", "Target")
    x = c["X"]
    c.set("Loss", x.shape if c.attr("reduction") == "none" else (1,), x.dtype)


def _divisor(b: Context, x: Any) -> int:
    """The divisor of the sum of all terms."""
    return {"mean": x.size, "batchmean": x.shape[0] if x.shape else 1}.get(b.attr("reduction", "mean"), 1)


@op(
    "kldiv_loss",
    inputs={"X: float": "logarithms of probabilities, any shape", "Target: float": "probabilities, same shape"},
    outputs={"Loss": "the terms, or [1] their sum or mean"},
    attrs={
        "reduction": Attr("string", "mean", "none, sum, mean over elements, or batchmean over rows", enum=REDUCTIONS)
    },
    cost="4 * X",
    infer=_infer,
    grad=default_grad("X", "Target", "Loss@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def kldiv_loss(b: Binder) -> None:
    """Loss = Target · (log Target - X), 0 where Target is not positive; reduced as ``reduction`` says.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("kldiv_loss", {"X": [[0.0, -1.0]], "Target": [[0.0, 1.0]]}, {"reduction": "none"})["Loss"]
        array([[0., 1.]])

    Source: Kullback, Leibler (1951); Fluid's kldiv_loss_op.
    """
    if b.on_cuda:
        x, loss = b["X"], b["Loss"]
        if b.attr("reduction") == "none":
            return terms(b, "kldiv_loss", [x, b["Target"]], loss)
        target, how = of_dtype(b, b["Target"], x.dtype), Fold("f::kldiv_mean", "f::kldiv", "f::total", "f::mean")
        return fold(b, TERMS, how, x, range(x.ndim), loss, _divisor(b, x), target)
    (x, target), loss, rank = values(b, b["X"], b["Target"]), b["Loss"], b["X"].ndim
    t = (np.log(target) - x) * target
    t.put(0, target <= 0)
    if b.attr("reduction") == "none":
        return t.into(loss)
    return (t.sum(tuple(range(rank))) / _divisor(b, b["X"])).into(loss.reshape((1,) * rank))


@grad_op("kldiv_loss_grad", cuda=FLOATS)
def kldiv_loss_grad(b: Binder) -> None:
    """dX = -dLoss · Target where Target is positive, divided as Loss was."""
    if b.on_cuda:
        dx, g = b["X@GRAD"], b["Loss@GRAD"]
        target, divisor = of_dtype(b, b["Target"], dx.dtype), max(_divisor(b, dx), 1)
        numbers = np.float64(-1 / divisor), np.int64(b.attr("reduction", "mean") == "none")
        return each(b, TERMS, f"kldiv_loss_grad<{ctype(dx.dtype)}>", dx.size, target, g, dx, *numbers)
    target, g = values(b, b["Target"], b["Loss@GRAD"])
    return (np.maximum(target, 0) * (-1 / _divisor(b, b["X@GRAD"])) * g).into(b["X@GRAD"])


@c_code("kldiv_loss", "kldiv_loss_grad")
def _kldiv_in_c(c: Context) -> dict[str, Constant]:
    target = c["Target"]
    return {"COUNT": target.size, "EACH": c.attr("reduction", "mean") == "none", "PARTS": max(_divisor(c, target), 1)}


@c_code("nll_loss", "nll_loss_grad")
def _nll_in_c(c: Context) -> dict[str, Constant]:
    shape, reduction = c["X"].shape, c.attr("reduction", "mean")
    sizes = {"ROWS": shape[0], "CLASSES": shape[1], "INNER": math.prod(shape[2:])}
    ignored = c.attr("ignore_index", -100)
    return {**sizes, "IGNORED": ignored, "EACH": reduction == "none", "MEAN": reduction == "mean"}
