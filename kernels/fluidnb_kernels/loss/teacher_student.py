"""teacher_student_sigmoid_loss: a click, and what a teacher thinks of it, in one label."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, default_grad, grad_op, op
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.launch import launch
from fluidnb_kernels.rules import alike


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
