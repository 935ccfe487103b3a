"""softmax and log_softmax: elements along a dimension as shares of one."""

import math
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import Source, ctype, each_line, elements, lines_along, typed
from fluidnb_kernels.cuda.register_rows import held_rows, held_types
from fluidnb_kernels.emit import FLOATS, apply

#: Differences to the maximum below this one count as it: exp of less is nothing beside the maximum's 1.
LOWEST = -64

_OF_ROWS = ("softmax", "softmax_grad")
#: Blocks that go round over the rows of softmax: 8 for each multiprocessor of an H100, 4 % faster there than one visit.
_BLOCKS = 1056


#: softmax, and what is made of it, for GPUs; and softmax of rows that are not too long.
CUDA = Source(__file__, "softmax.cu", typed((
    "softmax softmax_grad log_softmax log_softmax_grad hard_loss soft_loss hard_loss_grad soft_loss_grad", FLOATS
)))  # fmt: skip
ROWS = Source(__file__, "softmax_rows.cu", lambda: [
    f"{name}<{types}>" for name in _OF_ROWS for dtype in elements(FLOATS) for types in held_types(dtype)
])  # fmt: skip


def emit_softmax(b: Binder, x: Any, out: Any, axis: int) -> tuple[Any, Any]:
    """Emit ``out = softmax(x)``; gives x less its maximum (not below LOWEST), and the sums of exponentials."""
    v, result = values(b, x, out)
    t = v - v.reduced(np.maximum, axis)
    np.maximum(t, LOWEST, out=t)
    np.exp(t).into(out)
    total = result.sum(axis).array
    b(np.multiply, out, apply(b, np.reciprocal, total), out=out)  # a quotient of each element takes twice as long
    return t.array, total


def softmax_shape(c: Context) -> None:
    """Rule: Out is like X, which has the axis."""
    x, axis = c["X"], c.attr("axis")
    c.require(
        -max(x.ndim, 1) <= axis < max(x.ndim, 1), f"Attr(axis) of {c.definition.type} must name a dimension of X.",
        expected=f"{-x.ndim} to {x.ndim - 1}", received=axis,
    )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


@op(
    "softmax",
    inputs={"X: float[…, classes]": "logits"},
    outputs={"Out": "probabilities, of the shape of X"},
    attrs={
        "axis": Attr("int", -1, "the dimension that sums to one"),
        "data_format": Attr("string", "AnyLayout", "ignored (compatibility); the axis decides"),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    },
    cost="5 * X",
    infer=softmax_shape,
    grad=default_grad("Out", "Out@GRAD"),
    cuda=FLOATS,
)
def softmax(b: Binder) -> None:
    """Out = exp(X - max X) / sum(exp(X - max X)) along an axis.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("softmax", {"X": [[1.0, 1.0]]})["Out"]
        array([[0.5, 0.5]])

    Source: Fluid's softmax_op; differences to the maximum are not taken below -64, as in Paddle's CPU kernel.
    """
    if b.on_cuda:
        return along(b, "softmax", b.attr("axis"), b["X"], b["Out"])
    emit_softmax(b, b["X"], b["Out"], b.attr("axis"))


@grad_op("softmax_grad", cuda=FLOATS)
def softmax_grad(b: Binder) -> None:
    """dX = Out · (dOut - sum(dOut · Out)) along the axis."""
    if b.on_cuda:
        return along(b, "softmax_grad", b.attr("axis", -1), b["Out"], b["Out@GRAD"], b["X@GRAD"])
    out, g = values(b, b["Out"], b["Out@GRAD"])
    t = out * g
    np.subtract(g, t.sum(b.attr("axis", -1)), out=t)
    (t * out).into(b["X@GRAD"])


@c_code("softmax", "softmax_grad", "log_softmax", "log_softmax_grad")
def _softmax_in_c(c: Context) -> dict[str, Constant]:
    shape = c["X" if c.has("X") else "Out"].shape or (1,)
    axis = c.attr("axis", -1) % len(shape)
    return {"OUTER": math.prod(shape[:axis]), "N": shape[axis], "INNER": math.prod(shape[axis + 1 :])}


def along(b: Binder, name: str, axis: int, *operands: Any) -> None:
    """Emit a kernel of ``softmax.cu`` over the lines along an axis; the first operand has their shape and dtype."""
    x, (lines, n, inner) = operands[0], lines_along(operands[0].shape, axis)
    two, most = (True, 1 << 16) if name == "softmax_grad" else (False, _BLOCKS)
    if name in _OF_ROWS and inner == 1 and held_rows(b, ROWS, name, lines, n, operands, *operands, two=two, most=most):
        return
    each_line(b, CUDA, f"{name}<{ctype(x.dtype)}>", lines, n, inner, *operands)


@op(
    "log_softmax",
    inputs={"X: float[…, classes]": "logits"},
    outputs={"Out": "logarithms of probabilities, of the shape of X"},
    attrs={"axis": Attr("int", -1, "the dimension along which probabilities sum to one")},
    cost="5 * X",
    infer=softmax_shape,
    grad=default_grad("Out", "Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def log_softmax(b: Binder) -> None:
    """Out = X - log(sum(exp(X))) along an axis.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("log_softmax", {"X": [[0.0, 0.0]]})["Out"].round(4)
        array([[-0.6931, -0.6931]])

    Source: Paddle's log_softmax_op.
    """
    if b.on_cuda:
        return along(b, "log_softmax", b.attr("axis"), b["X"], b["Out"])
    axis, (v, result) = b.attr("axis"), values(b, b["X"], b["Out"])  # Out is not the memory of X
    (v - v.reduced(np.maximum, axis)).into(b["Out"])
    (result - np.log(np.exp(result).sum(axis))).into(b["Out"])


@grad_op("log_softmax_grad", cuda=FLOATS)
def log_softmax_grad(b: Binder) -> None:
    """dX = dOut - exp(Out) · sum(dOut) along the axis."""
    if b.on_cuda:
        return along(b, "log_softmax_grad", b.attr("axis", -1), b["Out"], b["Out@GRAD"], b["X@GRAD"])
    out, g = values(b, b["Out"], b["Out@GRAD"])
    total = g.sum(b.attr("axis", -1))
    (g - np.exp(out) * total).into(b["X@GRAD"])
