"""huber_loss, modified_huber_loss and smooth_l1_loss: losses that grow like a square, then like a line."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import Operand, values
from fluidnb_kernels.cuda import ctype, each_line, of_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.binary import signs
from fluidnb_kernels.loss.launch import LINES, NOTHING, pointwise, wanted
from fluidnb_kernels.rules import alike, fits, same_shape


def _square_or_line(x: Operand, width: float) -> Operand:
    """x² / 2 where |x| <= width, width · (|x| - width / 2) elsewhere."""
    far = abs(x)
    near = np.minimum(far, width)
    return (near * -0.5 + far) * near


def _limited(x: Operand, width: float) -> Operand:
    """x limited to -width and width."""
    return np.minimum(np.maximum(x, -width), width)


def _delta(b: Binder) -> tuple[float]:
    return (b.attr("delta"),)


@pointwise(
    "huber_loss", "X Y", "Residual Out", _delta,
    inputs={"X: float[N, 1]": "predictions", "Y: float": "targets, same shape"},
    outputs={"Residual~": "Y - X", "Out": "the loss of each element"},
    attrs={"delta": Attr("float", doc="where the parabola becomes a line")},
    cost="4 * X",
    grad=default_grad("Residual", "Out@GRAD"),
)  # fmt: skip
def huber_loss(x: Operand, y: Operand) -> Iterator[Operand]:
    """Out = r² / 2 where |r| <= delta, delta · (|r| - delta / 2) elsewhere, with r = Residual = Y - X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("huber_loss", {"X": [[0.0], [0.0]], "Y": [[1.0], [4.0]]}, {"delta": 2.0})["Out"]
        array([[0.5],
               [6. ]])

    Source: Fluid's huber_loss_op.
    """
    r = y - x
    yield r
    yield _square_or_line(r, x.attr("delta"))


@pointwise(
    "huber_loss_grad", "Residual Out@GRAD", "Y@GRAD X@GRAD", _delta, infer=alike("Residual Out@GRAD", "X@GRAD Y@GRAD")
)  # fmt: skip
def huber_loss_grad(r: Operand, g: Operand) -> Iterator[Operand]:
    """dY = dOut · r held between -delta and delta; dX = -dY."""
    t = _limited(r, r.attr("delta")) * g
    yield t
    yield -t


@pointwise(
    "modified_huber_loss", "X Y", "IntermediateVal Out",
    inputs={"X: float[N, 1]": "scores", "Y: float": "0 or 1, same shape"},
    outputs={"IntermediateVal~": "X · (2 · Y - 1)", "Out": "the loss of each element"},
    cost="4 * X",
    grad=default_grad("IntermediateVal", "Y", "Out@GRAD", wrt=["X"]),
)  # fmt: skip
def modified_huber_loss(x: Operand, y: Operand) -> Iterator[Operand]:
    """Out = max(0, 1 - v)² where v >= -1, -4 · v elsewhere, with v = X · (2 · Y - 1).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("modified_huber_loss", {"X": [[0.5], [-2.0]], "Y": [[1.0], [1.0]]})["Out"]
        array([[0.25],
               [8.  ]])

    Source: Zhang (ICML 2004); Fluid's modified_huber_loss_op.
    """
    v = x * signs(y)
    yield v
    gap = np.maximum(1 - v, 0)
    t = gap * gap
    t.put(v * -4, v < -1)
    yield t


@pointwise(
    "modified_huber_loss_grad", "IntermediateVal Y Out@GRAD", "X@GRAD",
    infer=alike("IntermediateVal Y Out@GRAD", "X@GRAD"),
)  # fmt: skip
def modified_huber_loss_grad(v: Operand, y: Operand, g: Operand) -> Operand:
    """dX = dOut · (2 · Y - 1) · (-2 · max(0, 1 - v) where v >= -1, -4 elsewhere)."""
    return np.minimum(np.maximum(1 - v, 0), 2) * -2 * signs(y) * g


def _smooth_infer(c: Context) -> None:
    same_shape(c, "X", "Y")
    x = c["X"]
    c.require(x.ndim >= 2, "The rank of Input(X) of smooth_l1_loss must not be less than 2.", received=list(x.shape))
    for slot in ("InsideWeight", "OutsideWeight"):
        fits(c, slot, x.shape, f"Input({slot}) of smooth_l1_loss must have the shape of Input(X).")
    c.require(
        c.has("InsideWeight") == c.has("OutsideWeight"), "smooth_l1_loss takes both weights or none.",
        expected="InsideWeight and OutsideWeight", received="one of them",
    )  # fmt: skip
    c.set("Diff", x.shape, x.dtype)
    c.set("Out", (x.shape[0], 1), x.dtype)


@op(
    "smooth_l1_loss",
    inputs={
        "X: float[N, …]": "predictions",
        "Y: float": "targets, same shape",
        "InsideWeight?: float": "factors of the differences",
        "OutsideWeight?: float": "factors of the losses",
    },
    outputs={"Diff~": "the weighted differences", "Out": "[N, 1]: the loss of each row"},
    attrs={"sigma": Attr("float", 1.0, "where the parabola becomes a line: at 1 / sigma²", gt=0)},
    cost="6 * X",
    infer=_smooth_infer,
    grad=default_grad("Diff", "InsideWeight", "OutsideWeight", "Out@GRAD", wrt=["X", "Y"]),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def smooth_l1_loss(b: Binder) -> None:
    """Out = the sum over a row of sigma² · d² / 2 where |d| < 1 / sigma², |d| - 1 / (2 · sigma²) elsewhere.

    Here d = (X - Y) · InsideWeight, and the terms are multiplied with OutsideWeight.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("smooth_l1_loss", {"X": [[0.5, 3.0]], "Y": [[0.0, 0.0]]})["Out"]
        array([[2.625]])

    Source: Girshick, Fast R-CNN (2015); Fluid's smooth_l1_loss_op.
    """
    if b.on_cuda:
        x = b["X"]
        y, weights, diff = of_dtype(b, b["Y"], x.dtype), _weights_on_cuda(b, x.dtype), wanted(b, "Diff")
        rows, name = len(x), f"smooth_l1_loss<{ctype(x.dtype)}>"
        sigma2 = np.float64(b.attr("sigma") ** 2)
        return each_line(b, LINES, name, rows, x.size // max(rows, 1), 1, x, y, *weights, diff, b["Out"], sigma2)
    (x, y), sigma2, rank = values(b, b["X"], b["Y"]), b.attr("sigma") ** 2, b["X"].ndim
    d = x - y
    if b.has("InsideWeight"):
        d *= x.slot("InsideWeight")
    if b.wants("Diff"):
        d.into(b["Diff"])
    t = _square_or_line(d, 1 / sigma2) * sigma2
    if b.has("OutsideWeight"):
        t *= x.slot("OutsideWeight")
    t.sum(tuple(range(1, rank))).into(b["Out"].reshape(-1, *[1] * (rank - 1)))


def _smooth_infer_grad(c: Context) -> None:
    d = c["Diff"]
    for slot in ("InsideWeight", "OutsideWeight"):
        fits(c, slot, d.shape, f"Input({slot}) of smooth_l1_loss_grad must have the shape of Input(Diff).")
    c.require(
        d.ndim and product(c["Out@GRAD"].shape) == d.shape[0],
        "Input(Out@GRAD) of smooth_l1_loss_grad must have a number for each row of Input(Diff).",
        expected=f"shape {[d.shape[0] if d.ndim else '?', 1]}", received=f"shape {list(c['Out@GRAD'].shape)}",
    )  # fmt: skip
    for slot in ("X@GRAD", "Y@GRAD"):
        c.set(slot, d.shape, d.dtype, c.lod("Diff"))


@grad_op("smooth_l1_loss_grad", infer=_smooth_infer_grad, cuda=FLOATS)
def smooth_l1_loss_grad(b: Binder) -> None:
    """dX = dOut · sigma² · d held between -1 and 1, times both weights; dY = -dX."""
    if b.on_cuda:
        d = b["Diff"]
        rows, sigma2 = len(d), np.float64(b.attr("sigma", 1.0) ** 2)
        operands = d, *_weights_on_cuda(b, d.dtype), b["Out@GRAD"], wanted(b, "X@GRAD"), wanted(b, "Y@GRAD"), sigma2
        return each_line(b, LINES, f"smooth_l1_loss_grad<{ctype(d.dtype)}>", rows, d.size // max(rows, 1), 1, *operands)
    sigma2, rank = b.attr("sigma", 1.0) ** 2, b["Diff"].ndim
    d, g = values(b, b["Diff"], b["Out@GRAD"].reshape(-1, *[1] * (rank - 1)))
    t = _limited(d, 1 / sigma2) * sigma2
    for slot in ("InsideWeight", "OutsideWeight"):
        if b.has(slot):
            t *= d.slot(slot)
    t *= g
    if b.wants("X@GRAD"):
        t.into(b["X@GRAD"])
    if b.wants("Y@GRAD"):
        (-t).into(b["Y@GRAD"])


def _weights_on_cuda(b: Binder, dtype: Any) -> list[Array]:
    return [of_dtype(b, b[s], dtype) if b.has(s) else NOTHING for s in ("InsideWeight", "OutsideWeight")]


@c_code("smooth_l1_loss", "smooth_l1_loss_grad")
def _smooth_l1_in_c(c: Context) -> dict[str, Constant]:
    shape = c["X" if c.has("X") else "Diff"].shape
    return {"ROWS": shape[0], "N": math.prod(shape[1:]), "SIGMA2": c.attr("sigma", 1.0) ** 2}
