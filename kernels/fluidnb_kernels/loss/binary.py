"""Losses of two classes: log_loss, hinge_loss, sigmoid_cross_entropy_with_logits, teacher_student_sigmoid_loss."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.activation.smooth import log_1p_exp, logistic
from fluidnb_kernels.arithmetic import Operand, values
from fluidnb_kernels.cuda import ctype, each, of_dtype
from fluidnb_kernels.cuda.axis_reduction import Fold, fold
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.launch import NOTHING, TERMS, launch, pointwise
from fluidnb_kernels.rules import alike


def _epsilons(b: Binder) -> tuple[float, float]:
    return b.attr("epsilon"), 1 + b.attr("epsilon")


@pointwise(
    "log_loss", "Predicted Labels", "Loss", _epsilons,
    inputs={"Predicted: float[N, 1]": "probabilities", "Labels: float[N, 1]": "0 or 1"},
    outputs={"Loss": "the loss of each row"},
    attrs={"epsilon": Attr("float", doc="keeps logarithms finite")},
    cost="6 * Predicted",
    grad=default_grad("Predicted", "Labels", "Loss@GRAD", wrt=["Predicted"]),
)  # fmt: skip
def log_loss(p: Operand, label: Operand) -> Operand:
    """Loss = -Labels · log(P + epsilon) - (1 - Labels) · log(1 - P + epsilon).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("log_loss", {"Predicted": [[0.5]], "Labels": [[1.0]]}, {"epsilon": 1e-4})["Loss"].round(3)
        array([[0.693]])

    Source: Fluid's log_loss_op.
    """
    epsilon = p.attr("epsilon")
    return -(np.log(p + epsilon) * label + np.log((1 + epsilon) - p) * (1 - label))


@pointwise("log_loss_grad", "Predicted Labels Loss@GRAD", "Predicted@GRAD", _epsilons)
def log_loss_grad(p: Operand, label: Operand, g: Operand) -> Operand:
    """dPredicted = dLoss · ((1 - Labels) / (1 - P + epsilon) - Labels / (P + epsilon))."""
    epsilon = p.attr("epsilon")
    return g * ((1 - label) / ((1 + epsilon) - p) - label / (p + epsilon))


def signs(label: Operand) -> Operand:
    """-1 for the label 0, 1 for the label 1."""
    return label * 2 - 1


@pointwise(
    "hinge_loss", "Logits Labels", "Loss",
    inputs={"Logits: float[N, 1]": "scores", "Labels: float[N, 1]": "0 or 1"},
    outputs={"Loss": "the loss of each row"},
    cost="3 * Logits",
    grad=default_grad("Logits", "Labels", "Loss@GRAD", wrt=["Logits"]),
)  # fmt: skip
def hinge_loss(x: Operand, label: Operand) -> Operand:
    """Loss = max(0, 1 - Logits · (2 · Labels - 1)).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("hinge_loss", {"Logits": [[0.25]], "Labels": [[1.0]]})["Loss"]
        array([[0.75]])

    Source: Fluid's hinge_loss_op.
    """
    return np.maximum(1 - x * signs(label), 0)


@pointwise("hinge_loss_grad", "Logits Labels Loss@GRAD", "Logits@GRAD")
def hinge_loss_grad(x: Operand, label: Operand, g: Operand) -> Operand:
    """dLogits = -dLoss · (2 · Labels - 1) where the loss is not 0."""
    sign = signs(label)
    return -(g * sign * (x * sign < 1))


def share_out(values: Array, counts: Array) -> None:
    """Divide by the number of elements that count."""
    values /= max(np.count_nonzero(counts), 1e-5)


def _finish(b: Binder, t: Operand, out: Array) -> None:
    """Emit ``out = t``, 0 where the label is ignored, normalized if requested."""
    counts = t.slot("Label") != b.attr("ignore_index", -100)
    (t * counts).into(out)
    if b.attr("normalize", False):
        b(share_out, out, counts.array)


def _infer(c: Context) -> None:
    c.require(not c.has("pos_weight"), f"{c.definition.type} takes no weights.", received=c.name("pos_weight"))
    alike("X Label", "Out")(c)


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
    infer=_infer,
    grad=default_grad("X", "Label", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def sigmoid_cross_entropy_with_logits(b: Binder) -> None:
    """Out = max(X, 0) - X · Label + log(1 + exp(-|X|)): the cross entropy of sigmoid(X), without its overflow.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sigmoid_cross_entropy_with_logits", {"X": [[0.0]], "Label": [[1.0]]})["Out"].round(4)
        array([[0.6931]])

    Source: Fluid's sigmoid_cross_entropy_with_logits_op.
    """
    if b.on_cuda:
        x = b["X"]
        labels, counts, ignore = _labels_on_cuda(b)
        return each(b, TERMS, f"sigmoid_loss<{ctype(x.dtype)}>", x.size, x, labels, counts, b["Out"], ignore)
    x, label = values(b, b["X"], b["Label"])
    t = log_1p_exp(x)
    t -= x * label
    _finish(b, t, b["Out"])


@grad_op("sigmoid_cross_entropy_with_logits_grad", dtype_slot="X", cuda=FLOATS)
def sigmoid_cross_entropy_with_logits_grad(b: Binder) -> None:
    """dX = dOut · (sigmoid(X) - Label), 0 where the label is ignored."""
    if b.on_cuda:
        x, g = b["X"], b["Out@GRAD"]
        labels, counts, ignore = _labels_on_cuda(b)
        return each(b, TERMS, f"sigmoid_loss_grad<{ctype(x.dtype)}>", x.size, x, labels, g, counts, b["X@GRAD"], ignore)
    x, label, g = values(b, b["X"], b["Label"], b["Out@GRAD"])
    _finish(b, (logistic(x) - label) * g, b["X@GRAD"])


def _labels_on_cuda(b: Binder) -> tuple[Array, Array, np.float64]:
    """The labels, the number that count if requested, and the ignored one."""
    labels, ignore = of_dtype(b, b["Label"], b["X"].dtype), float(b.attr("ignore_index", -100))
    if not b.attr("normalize", False):
        return labels, NOTHING, np.float64(ignore)
    counts = b.tmp((1,), np.float64 if labels.dtype == np.float64 else np.float32)
    fold(b, TERMS, Fold("f::others", then="f::total"), labels, range(labels.ndim), counts, ignore)
    return labels, counts, np.float64(ignore)


def parts(label: Array) -> tuple[Array, Array, Array]:
    """Take a label apart: click, the teacher's value, and whether there is a teacher.

    A label is -2 for no click and -1 for a click without a teacher; with one, its value in [0, 1), plus 1 for a click.
    """
    taught = label >= 0
    click = np.where(taught, label >= 1, label >= -1).astype(label.dtype)
    return click, np.where(taught, label - click, 0).astype(label.dtype), taught.astype(label.dtype)


def losses(x: Array, label: Array, out: Array) -> None:
    """Write the cross entropy with the click, and with the teacher's value where there is one."""
    click, value, taught = parts(label)
    out[...] = (np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))) * (1 + taught) - x * (click + value)


def slopes(x: Array, label: Array, grad: Array, low: float, high: float, out: Array) -> None:
    """Write the gradient of `losses`; it is 0 where x is out of bounds."""
    click, value, taught = parts(label)
    guess = 1 / (1 + np.exp(-np.clip(x, low, high)))
    out[...] = np.where((x > low) & (x < high), guess * (1 + taught) - click - value, 0) * grad


@op(
    "teacher_student_sigmoid_loss",
    inputs={
        "X: float[N, 1]": "logits",
        "Label: float[N, 1]": "-2 no click, -1 a click; with a teacher its value in [0, 1), plus 1 for a click",
    },
    outputs={"Y": "the loss of each row"},
    attrs={
        "soft_max_up_bound": Attr("float", 15.0, "from here on there is no gradient"),
        "soft_max_lower_bound": Attr("float", -15.0, "below there is no gradient"),
    },
    cost="6 * X",
    infer=alike("X Label", "Y"),
    grad=default_grad("X", "Label", "Y@GRAD", wrt=["X"]),
    dtypes=FLOATS,
)
def teacher_student_sigmoid_loss(b: Binder) -> None:
    """Y = H(X, click) + H(X, teacher), with H(x, z) = max(x, 0) - x · z + log(1 + exp(-|x|)).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("teacher_student_sigmoid_loss", {"X": [[0.0]], "Label": [[-1.0]]})["Y"].round(3)
        array([[0.693]])

    Source: Fluid's teacher_student_sigmoid_loss_op.
    """
    b(losses, b["X"], b["Label"], b["Y"])


@grad_op("teacher_student_sigmoid_loss_grad")
def teacher_student_sigmoid_loss_grad(b: Binder) -> None:
    """dX = dY · (s(X) - click + s(X) - teacher) between the bounds."""
    b(slopes, b["X"], b["Label"], b["Y@GRAD"], *_bounds(b), b["X@GRAD"])


def _bounds(b: Binder) -> tuple[float, float]:
    return b.attr("soft_max_lower_bound"), b.attr("soft_max_up_bound")


launch("teacher_student_sigmoid_loss", "X Label", "Y", name="taught")
launch("teacher_student_sigmoid_loss_grad", "X Label Y@GRAD", "X@GRAD", _bounds, "taught_grad")


@c_code("sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy_with_logits_grad")
def _sigmoid_loss_in_c(c: Context) -> dict[str, Constant]:
    ignored = float(c.attr("ignore_index", -100))
    return {"COUNT": c["X"].size, "IGNORED": ignored, "DIVIDED": bool(c.attr("normalize", False))}
