"""log_loss, hinge_loss and sigmoid_cross_entropy_with_logits: losses of yes or no."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb.op.rules import Rule
from fluidnb_kernels.activation.smooth import logistic
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.axis_reduction import Fold, fold
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.loss.launch import NOTHING, TERMS, terms
from fluidnb_kernels.rules import same_shape

Array = Any


def _each(x: str, label: str, out: str) -> Rule:
    """Rule: one loss for each element."""

    def infer(c: Context) -> None:
        c.require(not c.has("pos_weight"), f"{c.definition.type} takes no weights.", received=c.name("pos_weight"))
        same_shape(c, x, label)
        c.set(out, c[x].shape, c[x].dtype, c.lod(x))

    return infer


def _terms(b: Binder) -> tuple[Array, Array, Array]:
    """Emit P + epsilon, 1 - P + epsilon and 1 - Labels."""
    p, epsilon, one = b["Predicted"], b.attr("epsilon"), b.const(1, b["Predicted"].dtype)
    yes = apply(b, np.add, p, b.const(epsilon, p.dtype))
    no = apply(b, np.subtract, b.const(1 + epsilon, p.dtype), p)
    return yes, no, apply(b, np.subtract, one, b["Labels"])


@op(
    "log_loss",
    inputs={"Predicted: float[N, 1]": "probabilities", "Labels: float[N, 1]": "0 or 1"},
    outputs={"Loss": "the loss of each row"},
    attrs={"epsilon": Attr("float", doc="keeps logarithms finite")},
    cost="6 * Predicted",
    infer=_each("Predicted", "Labels", "Loss"),
    grad=default_grad("Predicted", "Labels", "Loss@GRAD", wrt=["Predicted"]),
    dtypes=FLOATS,
)
def log_loss(b: Binder) -> None:
    """Loss = -Labels · log(P + epsilon) - (1 - Labels) · log(1 - P + epsilon).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("log_loss", {"Predicted": [[0.5]], "Labels": [[1.0]]}, {"epsilon": 1e-4})["Loss"].round(3)
        array([[0.693]])

    Source: Fluid's log_loss_op.
    """
    yes, no, against = _terms(b)
    t = apply(b, np.multiply, apply(b, np.log, yes), b["Labels"])
    u = apply(b, np.multiply, apply(b, np.log, no), against)
    b(np.add, t, u, out=t)
    b(np.negative, t, out=b["Loss"])


@grad_op("log_loss_grad")
def log_loss_grad(b: Binder) -> None:
    """dPredicted = dLoss · ((1 - Labels) / (1 - P + epsilon) - Labels / (P + epsilon))."""
    yes, no, against = _terms(b)
    t = apply(b, np.subtract, apply(b, np.divide, against, no), apply(b, np.divide, b["Labels"], yes))
    b(np.multiply, b["Loss@GRAD"], t, out=b["Predicted@GRAD"])


def _signs(b: Binder) -> Array:
    """Emit 2 · Labels - 1."""
    labels = b["Labels"]
    t = apply(b, np.multiply, labels, b.const(2, labels.dtype))
    b(np.subtract, t, b.const(1, labels.dtype), out=t)
    return t


@op(
    "hinge_loss",
    inputs={"Logits: float[N, 1]": "scores", "Labels: float[N, 1]": "0 or 1"},
    outputs={"Loss": "the loss of each row"},
    cost="3 * Logits",
    infer=_each("Logits", "Labels", "Loss"),
    grad=default_grad("Logits", "Labels", "Loss@GRAD", wrt=["Logits"]),
    dtypes=FLOATS,
)
def hinge_loss(b: Binder) -> None:
    """Loss = max(0, 1 - Logits · (2 · Labels - 1)).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("hinge_loss", {"Logits": [[0.25]], "Labels": [[1.0]]})["Loss"]
        array([[0.75]])

    Source: Fluid's hinge_loss_op.
    """
    x = b["Logits"]
    t = apply(b, np.subtract, b.const(1, x.dtype), apply(b, np.multiply, x, _signs(b)))
    b(np.maximum, t, b.const(0, x.dtype), out=b["Loss"])


@grad_op("hinge_loss_grad")
def hinge_loss_grad(b: Binder) -> None:
    """dLogits = -dLoss · (2 · Labels - 1) where the loss is not 0."""
    x, signs = b["Logits"], _signs(b)
    short = apply(b, np.less, apply(b, np.multiply, x, signs), b.const(1, x.dtype))
    t = apply(b, np.multiply, apply(b, np.multiply, b["Loss@GRAD"], signs), short)
    b(np.negative, t, out=b["Logits@GRAD"])


def share_out(values: Array, counts: Array) -> None:
    """Divide by the number of elements that count.

    Args:
        counts: bool.

    Example:
        >>> x = np.array([2.0, 0.0]); share_out(x, np.array([True, False])); x
        array([2., 0.])
    """
    values /= max(np.count_nonzero(counts), 1e-5)


def _finish(b: Binder, t: Array, out: Array) -> None:
    """Emit ``out = t``, 0 where the label is ignored, normalized if requested."""
    label = b["Label"]
    counts = apply(b, np.not_equal, label, b.const(b.attr("ignore_index", -100), label.dtype))
    b(np.multiply, t, counts, out=out)
    if b.attr("normalize", False):
        b(share_out, out, counts)


@op(
    "sigmoid_cross_entropy_with_logits",
    inputs={
        "X: float": "logits, any shape",
        "Label: float": "probabilities, same shape",
        "pos_weight?": "Paddle 2: weights",
    },
    outputs={"Out": "the loss of each element"},
    attrs={
        "normalize": Attr("bool", False, "divide by the number of elements that are not ignored"),
        "ignore_index": Attr("int", -100, "label of elements whose loss is 0"),
    },
    cost="5 * X",
    infer=_each("X", "Label", "Out"),
    grad=default_grad("X", "Label", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
)
def sigmoid_cross_entropy_with_logits(b: Binder) -> None:
    """Out = max(X, 0) - X · Label + log(1 + exp(-|X|)): the cross entropy of sigmoid(X), without its overflow.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sigmoid_cross_entropy_with_logits", {"X": [[0.0]], "Label": [[1.0]]})["Out"].round(4)
        array([[0.6931]])

    Source: Fluid's sigmoid_cross_entropy_with_logits_op.
    """
    x = b["X"]
    t = apply(b, np.log1p, apply(b, np.exp, apply(b, np.negative, apply(b, np.absolute, x))))
    b(np.add, t, apply(b, np.maximum, x, b.const(0, x.dtype)), out=t)
    b(np.subtract, t, apply(b, np.multiply, x, b["Label"]), out=t)
    _finish(b, t, b["Out"])


@grad_op("sigmoid_cross_entropy_with_logits_grad", dtype_slot="X")
def sigmoid_cross_entropy_with_logits_grad(b: Binder) -> None:
    """dX = dOut · (sigmoid(X) - Label), 0 where the label is ignored."""
    t = apply(b, np.subtract, logistic(b, b["X"]), b["Label"])
    b(np.multiply, t, b["Out@GRAD"], out=t)
    _finish(b, t, b["X@GRAD"])


@kernel("log_loss", place="cuda", dtypes=FLOATS)
def log_loss_on_cuda(b: Binder) -> None:
    """One launch."""
    epsilon = b.attr("epsilon")
    terms(b, "log_loss", [b["Predicted"], b["Labels"]], b["Loss"], NOTHING, epsilon, 1 + epsilon)


@kernel("log_loss_grad", place="cuda", dtypes=FLOATS)
def log_loss_grad_on_cuda(b: Binder) -> None:
    """One launch."""
    operands, epsilon = [b["Predicted"], b["Labels"], b["Loss@GRAD"]], b.attr("epsilon")
    terms(b, "log_loss_grad", operands, b["Predicted@GRAD"], NOTHING, epsilon, 1 + epsilon)


@kernel("hinge_loss", place="cuda", dtypes=FLOATS)
def hinge_loss_on_cuda(b: Binder) -> None:
    """One launch."""
    terms(b, "hinge_loss", [b["Logits"], b["Labels"]], b["Loss"])


@kernel("hinge_loss_grad", place="cuda", dtypes=FLOATS)
def hinge_loss_grad_on_cuda(b: Binder) -> None:
    """One launch."""
    terms(b, "hinge_loss_grad", [b["Logits"], b["Labels"], b["Loss@GRAD"]], b["Logits@GRAD"])


def _labels_on_cuda(b: Binder) -> tuple[Array, Array, np.float64]:
    """The labels, the number that count if requested, and the ignored one."""
    labels, ignore = of_dtype(b, b["Label"], b["X"].dtype), float(b.attr("ignore_index", -100))
    if not b.attr("normalize", False):
        return labels, NOTHING, np.float64(ignore)
    counts = b.tmp((1,), np.float64 if labels.dtype == np.float64 else np.float32)
    fold(b, TERMS, Fold("f::others", then="f::total"), labels, range(labels.ndim), counts, ignore)
    return labels, counts, np.float64(ignore)


@kernel("sigmoid_cross_entropy_with_logits", place="cuda", dtypes=FLOATS)
def sigmoid_cross_entropy_with_logits_on_cuda(b: Binder) -> None:
    """One launch, after one that counts labels with ``normalize``."""
    x = b["X"]
    labels, counts, ignore = _labels_on_cuda(b)
    each(b, TERMS, f"sigmoid_loss<{ctype(x.dtype)}>", x.size, x, labels, counts, b["Out"], ignore)


@kernel("sigmoid_cross_entropy_with_logits_grad", place="cuda", dtypes=FLOATS)
def sigmoid_cross_entropy_with_logits_grad_on_cuda(b: Binder) -> None:
    """One launch, after one that counts labels with ``normalize``."""
    x, g = b["X"], b["Out@GRAD"]
    labels, counts, ignore = _labels_on_cuda(b)
    each(b, TERMS, f"sigmoid_loss_grad<{ctype(x.dtype)}>", x.size, x, labels, g, counts, b["X@GRAD"], ignore)
