"""kldiv_loss: how far a distribution is from another."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import ctype, each, of_dtype
from fluidnb_kernels.cuda.axis_reduction import Fold, fold
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.launch import TERMS, terms
from fluidnb_kernels.rules import same_shape

REDUCTIONS = ("none", "mean", "sum", "batchmean")


def _infer(c: Context) -> None:
    same_shape(c, "X", "Target")
    x = c["X"]
    c.set("Loss", x.shape if c.attr("reduction") == "none" else (1,), x.dtype)


def _divisor(b: Binder, x: Array) -> int:
    """The divisor of the sum of all terms."""
    return {"mean": x.size, "batchmean": len(x)}.get(b.attr("reduction", "mean"), 1)


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
