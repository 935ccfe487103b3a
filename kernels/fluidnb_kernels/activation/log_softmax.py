"""log_softmax: the logarithm of softmax, without leaving logarithms."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, default_grad, grad_op, kernel, op
from fluidnb_kernels.activation.softmax import along, softmax_shape
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.emit import FLOATS


def emit_log_softmax(b: Binder, x: Array, out: Array, axis: int) -> None:
    """Emit ``out = x - max - log(sum(exp(x - max)))``.

    Args:
        out: of the same shape; not the memory of ``x``.
    """
    v, result = values(b, x, out)
    (v - v.reduced(np.maximum, axis)).into(out)
    (result - np.log(np.exp(result).sum(axis))).into(out)


@op(
    "log_softmax",
    inputs={"X: float[…, classes]": "logits"},
    outputs={"Out": "logarithms of probabilities, of the shape of X"},
    attrs={"axis": Attr("int", -1, "the dimension along which probabilities sum to one")},
    cost="5 * X",
    infer=softmax_shape,
    grad=default_grad("Out", "Out@GRAD"),
    dtypes=FLOATS,
)
def log_softmax(b: Binder) -> None:
    """Out = X - log(sum(exp(X))) along an axis.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("log_softmax", {"X": [[0.0, 0.0]]})["Out"].round(4)
        array([[-0.6931, -0.6931]])

    Source: Paddle's log_softmax_op.
    """
    emit_log_softmax(b, b["X"], b["Out"], b.attr("axis"))


@grad_op("log_softmax_grad")
def log_softmax_grad(b: Binder) -> None:
    """dX = dOut - exp(Out) · sum(dOut) along the axis."""
    out, g = values(b, b["Out"], b["Out@GRAD"])
    total = g.sum(b.attr("axis", -1))
    (g - np.exp(out) * total).into(b["X@GRAD"])


@kernel("log_softmax", place="cuda", dtypes=FLOATS)
def log_softmax_on_cuda(b: Binder) -> None:
    along(b, "log_softmax", b.attr("axis"), b["X"], b["Out"])


@kernel("log_softmax_grad", place="cuda", dtypes=FLOATS)
def log_softmax_grad_on_cuda(b: Binder) -> None:
    along(b, "log_softmax_grad", b.attr("axis", -1), b["Out"], b["Out@GRAD"], b["X@GRAD"])
