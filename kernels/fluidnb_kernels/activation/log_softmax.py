"""log_softmax: the logarithm of softmax, without leaving logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.activation.softmax import along
from fluidnb_kernels.emit import FLOATS, apply

Array = Any


def kept(shape: tuple[int, ...], axis: int) -> list[int]:
    """A shape with size 1 along one axis.

    Example:
        >>> kept((2, 3), -1)
        [2, 1]
    """
    out = list(shape)
    out[axis] = 1
    return out


def emit_log_softmax(b: Binder, x: Array, out: Array, axis: int) -> None:
    """Emit ``out = x - max - log(sum(exp(x - max)))``.

    Args:
        out: of the same shape; not the memory of ``x``.
    """
    top, total = (b.tmp(kept(x.shape, axis), x.dtype) for _ in range(2))
    b(np.maximum.reduce, x, axis, None, top, True)
    b(np.subtract, x, top, out=out)
    b(np.add.reduce, apply(b, np.exp, out), axis, None, total, True)
    b(np.subtract, out, apply(b, np.log, total), out=out)


def _infer(c: Context) -> None:
    x, axis = c["X"], c.attr("axis")
    c.require(
        -max(x.ndim, 1) <= axis < max(x.ndim, 1), "Attr(axis) of log_softmax must name a dimension of X.",
        expected=f"{-x.ndim} to {x.ndim - 1}", received=axis,
    )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


@op(
    "log_softmax",
    inputs={"X: float[…, classes]": "logits"},
    outputs={"Out": "logarithms of probabilities, of the shape of X"},
    attrs={"axis": Attr("int", -1, "the dimension along which probabilities sum to one")},
    cost="5 * X",
    infer=_infer,
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
    out, g, axis = b["Out"], b["Out@GRAD"], b.attr("axis", -1)
    total = b.tmp(kept(out.shape, axis), out.dtype)
    b(np.add.reduce, g, axis, None, total, True)
    b(np.subtract, g, apply(b, np.multiply, apply(b, np.exp, out), total), out=b["X@GRAD"])


@kernel("log_softmax", place="cuda", dtypes=FLOATS)
def log_softmax_on_cuda(b: Binder) -> None:
    """The maximum and the sum of exponentials in one pass over each line."""
    along(b, "log_softmax", b.attr("axis"), b["X"], b["Out"])


@kernel("log_softmax_grad", place="cuda", dtypes=FLOATS)
def log_softmax_grad_on_cuda(b: Binder) -> None:
    """dX = dOut - exp(Out) · sum(dOut) along the axis."""
    along(b, "log_softmax_grad", b.attr("axis", -1), b["Out"], b["Out@GRAD"], b["X@GRAD"])
