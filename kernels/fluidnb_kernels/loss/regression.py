"""huber_loss, modified_huber_loss and smooth_l1_loss: losses that grow like a square, then like a line."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.line_grid import each_line
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.loss.launch import LINES, NOTHING, terms, wanted
from fluidnb_kernels.rules import agree, same_shape

Array = Any


def _square_or_line(b: Binder, x: Array, width: float) -> Array:
    """Emit x² / 2 where |x| <= width, width · (|x| - width / 2) elsewhere."""
    far = apply(b, np.absolute, x)
    near = apply(b, np.minimum, far, b.const(width, x.dtype))
    t = apply(b, np.multiply, near, b.const(-0.5, x.dtype))
    b(np.add, t, far, out=t)
    return apply(b, np.multiply, t, near)


def _held(b: Binder, x: Array, width: float) -> Array:
    """Emit x held between -width and width."""
    t = apply(b, np.maximum, x, b.const(-width, x.dtype))
    b(np.minimum, t, b.const(width, x.dtype), out=t)
    return t


def _huber_infer(c: Context) -> None:
    same_shape(c, "X", "Y")
    x = c["X"]
    for slot in ("Residual", "Out"):
        c.set(slot, x.shape, x.dtype, c.lod("X"))


@op(
    "huber_loss",
    inputs={"X: float[N, 1]": "predictions", "Y: float": "targets, same shape"},
    outputs={"Residual~": "Y - X", "Out": "the loss of each element"},
    attrs={"delta": Attr("float", doc="where the parabola becomes a line")},
    cost="4 * X",
    infer=_huber_infer,
    grad=default_grad("Residual", "Out@GRAD"),
    dtypes=FLOATS,
)
def huber_loss(b: Binder) -> None:
    """Out = r² / 2 where |r| <= delta, delta · (|r| - delta / 2) elsewhere, with r = Residual = Y - X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("huber_loss", {"X": [[0.0], [0.0]], "Y": [[1.0], [4.0]]}, {"delta": 2.0})["Out"]
        array([[0.5],
               [6. ]])

    Source: Fluid's huber_loss_op.
    """
    r = b["Residual"] if b.wants("Residual") else b.like(b["X"])
    b(np.subtract, b["Y"], b["X"], out=r)
    b(np.copyto, b["Out"], _square_or_line(b, r, b.attr("delta")))


def _huber_grad_infer(c: Context) -> None:
    r = c["Residual"]
    for slot in ("X@GRAD", "Y@GRAD"):
        c.set(slot, r.shape, r.dtype, c.lod("Residual"))


@grad_op("huber_loss_grad", infer=_huber_grad_infer)
def huber_loss_grad(b: Binder) -> None:
    """dY = dOut · r held between -delta and delta; dX = -dY."""
    t = apply(b, np.multiply, _held(b, b["Residual"], b.attr("delta")), b["Out@GRAD"])
    if b.wants("X@GRAD"):
        b(np.negative, t, out=b["X@GRAD"])
    if b.wants("Y@GRAD"):
        b(np.copyto, b["Y@GRAD"], t)


def _modified_infer(c: Context) -> None:
    same_shape(c, "X", "Y")
    x = c["X"]
    for slot in ("IntermediateVal", "Out"):
        c.set(slot, x.shape, x.dtype, c.lod("X"))


def _signs(b: Binder) -> Array:
    """Emit 2 · Y - 1."""
    y = b["Y"]
    t = apply(b, np.multiply, y, b.const(2, y.dtype))
    b(np.subtract, t, b.const(1, y.dtype), out=t)
    return t


@op(
    "modified_huber_loss",
    inputs={"X: float[N, 1]": "scores", "Y: float": "0 or 1, same shape"},
    outputs={"IntermediateVal~": "X · (2 · Y - 1)", "Out": "the loss of each element"},
    cost="4 * X",
    infer=_modified_infer,
    grad=default_grad("IntermediateVal", "Y", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
)
def modified_huber_loss(b: Binder) -> None:
    """Out = max(0, 1 - v)² where v >= -1, -4 · v elsewhere, with v = X · (2 · Y - 1).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("modified_huber_loss", {"X": [[0.5], [-2.0]], "Y": [[1.0], [1.0]]})["Out"]
        array([[0.25],
               [8.  ]])

    Source: Zhang (ICML 2004); Fluid's modified_huber_loss_op.
    """
    x = b["X"]
    v = b["IntermediateVal"] if b.wants("IntermediateVal") else b.like(x)
    b(np.multiply, x, _signs(b), out=v)
    gap = apply(b, np.maximum, apply(b, np.subtract, b.const(1, x.dtype), v), b.const(0, x.dtype))
    t = apply(b, np.multiply, gap, gap)
    line = apply(b, np.multiply, v, b.const(-4, x.dtype))
    b(np.copyto, t, line, where=apply(b, np.less, v, b.const(-1, x.dtype)))
    b(np.copyto, b["Out"], t)


def _modified_grad_infer(c: Context) -> None:
    v = c["IntermediateVal"]
    c.set("X@GRAD", v.shape, v.dtype, c.lod("IntermediateVal"))


@grad_op("modified_huber_loss_grad", infer=_modified_grad_infer)
def modified_huber_loss_grad(b: Binder) -> None:
    """dX = dOut · (2 · Y - 1) · (-2 · max(0, 1 - v) where v >= -1, -4 elsewhere)."""
    v, dtype = b["IntermediateVal"], b["IntermediateVal"].dtype
    gap = apply(b, np.maximum, apply(b, np.subtract, b.const(1, dtype), v), b.const(0, dtype))
    b(np.minimum, gap, b.const(2, dtype), out=gap)
    t = apply(b, np.multiply, gap, b.const(-2, dtype))
    b(np.multiply, t, _signs(b), out=t)
    b(np.multiply, t, b["Out@GRAD"], out=b["X@GRAD"])


def _smooth_infer(c: Context) -> None:
    same_shape(c, "X", "Y")
    x = c["X"]
    c.require(x.ndim >= 2, "The rank of Input(X) of smooth_l1_loss must not be less than 2.", received=list(x.shape))
    for slot in ("InsideWeight", "OutsideWeight"):
        if c.has(slot):
            c.require(
                agree(c[slot].shape, x.shape), f"Input({slot}) of smooth_l1_loss must have the shape of Input(X).",
                expected=list(x.shape), received=list(c[slot].shape),
            )  # fmt: skip
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
    x, sigma2 = b["X"], b.attr("sigma") ** 2
    d = b["Diff"] if b.wants("Diff") else b.like(x)
    b(np.subtract, x, b["Y"], out=d)
    if b.has("InsideWeight"):
        b(np.multiply, d, b["InsideWeight"], out=d)
    t = _square_or_line(b, d, 1 / sigma2)
    b(np.multiply, t, b.const(sigma2, x.dtype), out=t)
    if b.has("OutsideWeight"):
        b(np.multiply, t, b["OutsideWeight"], out=t)
    b(np.add.reduce, t, tuple(range(1, x.ndim)), None, b["Out"].reshape(len(x)))


def _smooth_grad_infer(c: Context) -> None:
    d = c["Diff"]
    for slot in ("X@GRAD", "Y@GRAD"):
        c.set(slot, d.shape, d.dtype)


@grad_op("smooth_l1_loss_grad", infer=_smooth_grad_infer)
def smooth_l1_loss_grad(b: Binder) -> None:
    """dX = dOut · sigma² · d held between -1 and 1, times both weights; dY = -dX."""
    d, sigma2 = b["Diff"], b.attr("sigma", 1.0) ** 2
    t = _held(b, d, 1 / sigma2)
    b(np.multiply, t, b.const(sigma2, d.dtype), out=t)
    for slot in ("InsideWeight", "OutsideWeight"):
        if b.has(slot):
            b(np.multiply, t, b[slot], out=t)
    b(np.multiply, t, b["Out@GRAD"].reshape(-1, *[1] * (d.ndim - 1)), out=t)
    if b.wants("X@GRAD"):
        b(np.copyto, b["X@GRAD"], t)
    if b.wants("Y@GRAD"):
        b(np.negative, t, out=b["Y@GRAD"])


@kernel("huber_loss", place="cuda", dtypes=FLOATS)
def huber_loss_on_cuda(b: Binder) -> None:
    """One launch."""
    terms(b, "huber_loss", [b["X"], b["Y"]], wanted(b, "Residual"), b["Out"], b.attr("delta"))


@kernel("huber_loss_grad", place="cuda", dtypes=FLOATS)
def huber_loss_grad_on_cuda(b: Binder) -> None:
    """One launch for both gradients."""
    operands = [b["Residual"], b["Out@GRAD"]]
    terms(b, "huber_loss_grad", operands, wanted(b, "Y@GRAD"), wanted(b, "X@GRAD"), b.attr("delta"))


@kernel("modified_huber_loss", place="cuda", dtypes=FLOATS)
def modified_huber_loss_on_cuda(b: Binder) -> None:
    """One launch."""
    terms(b, "modified_huber_loss", [b["X"], b["Y"]], wanted(b, "IntermediateVal"), b["Out"])


@kernel("modified_huber_loss_grad", place="cuda", dtypes=FLOATS)
def modified_huber_loss_grad_on_cuda(b: Binder) -> None:
    """One launch."""
    terms(b, "modified_huber_loss_grad", [b["IntermediateVal"], b["Y"], b["Out@GRAD"]], b["X@GRAD"])


def _weights_on_cuda(b: Binder, dtype: Any) -> list[Array]:
    return [of_dtype(b, b[s], dtype) if b.has(s) else NOTHING for s in ("InsideWeight", "OutsideWeight")]


@kernel("smooth_l1_loss", place="cuda", dtypes=FLOATS)
def smooth_l1_loss_on_cuda(b: Binder) -> None:
    """One launch."""
    x = b["X"]
    y, weights, diff = of_dtype(b, b["Y"], x.dtype), _weights_on_cuda(b, x.dtype), wanted(b, "Diff")
    rows, name = len(x), f"smooth_l1_loss<{ctype(x.dtype)}>"
    sigma2 = np.float64(b.attr("sigma") ** 2)
    each_line(b, LINES, name, rows, x.size // max(rows, 1), 1, x, y, *weights, diff, b["Out"], sigma2)


@kernel("smooth_l1_loss_grad", place="cuda", dtypes=FLOATS)
def smooth_l1_loss_grad_on_cuda(b: Binder) -> None:
    """One launch for both gradients."""
    d = b["Diff"]
    rows, sigma2 = len(d), np.float64(b.attr("sigma", 1.0) ** 2)
    operands = d, *_weights_on_cuda(b, d.dtype), b["Out@GRAD"], wanted(b, "X@GRAD"), wanted(b, "Y@GRAD"), sigma2
    each_line(b, LINES, f"smooth_l1_loss_grad<{ctype(d.dtype)}>", rows, d.size // max(rows, 1), 1, *operands)
