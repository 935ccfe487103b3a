"""bilinear_tensor_product: numbers that are linear in each of two vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.emit import made
from fluidnb_kernels.math.mul import gemm
from fluidnb_kernels.rules import agree
from fluidnb_kernels.views import reading

Array = Any


def _infer(c: Context) -> None:
    x, y, w = c["X"].shape, c["Y"].shape, c["Weight"].shape
    c.require(
        len(x) == len(y) == 2 and agree(x[:1], y[:1]),
        "Input(X) and Input(Y) of bilinear_tensor_product must be matrices with as many rows.",
        expected="[n, d] and [n, e]", received=f"{list(x)} and {list(y)}",
    )  # fmt: skip
    c.require(
        len(w) == 3 and agree(w[1:], (x[1], y[1])), "Input(Weight) of bilinear_tensor_product does not fit.",
        expected=f"[size, {x[1]}, {y[1]}], the widths of X and Y", received=list(w),
    )  # fmt: skip
    if c.has("Bias"):
        bias = c["Bias"].shape
        c.require(
            agree(bias, (1, w[0])), "Input(Bias) of bilinear_tensor_product does not fit.", expected=[1, w[0]],
            received=list(bias),
        )  # fmt: skip
    c.set("Out", (x[0], w[0]), c["X"].dtype, c.lod("X"))


def _table(b: Binder) -> Array:
    """Weight as [d, size · e], in a workspace."""
    size, d, e = b["Weight"].shape
    return reading(b, b["Weight"].transpose(1, 0, 2), (d, size * e))


def _halves(b: Binder, table: Array) -> Array:
    """Emit X · Weight[i] for all i [n, size, e]."""
    size, _, e = b["Weight"].shape
    half = b.tmp((len(b["X"]), size * e), b["X"].dtype)
    gemm(b, b["X"], table, half)
    return half.reshape(-1, size, e)


@op(
    "bilinear_tensor_product",
    inputs={"X": "[n, d]", "Y": "[n, e]", "Weight": "[size, d, e]", "Bias?": "[1, size]"},
    outputs={"Out": "[n, size]"},
    infer=_infer,
    grad=default_grad("X", "Y", "Weight", "Out@GRAD"),
)
def bilinear_tensor_product(b: Binder) -> None:
    """Out[n, i] = X[n] · Weight[i] · Y[n] + Bias[i].

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"X": [[2.0]], "Y": [[3.0]], "Weight": [[[1.0]], [[10.0]]]}
        >>> run_op("bilinear_tensor_product", inputs)["Out"]
        array([[ 6., 60.]])

    Source: Fluid's bilinear_tensor_product_op.
    """
    out, y = b["Out"], b["Y"]
    half = _halves(b, _table(b))
    b(np.add.reduce, made(b, np.multiply, half, y.reshape(len(y), 1, -1)), -1, None, out)
    if b.has("Bias"):
        b(np.add, out, b["Bias"], out=out)


def _grad_infer(c: Context) -> None:
    for slot in ("X", "Y", "Weight"):
        c.set(slot + "@GRAD", c[slot].shape, c[slot].dtype, c.lod(slot))
    c.set("Bias@GRAD", (1, c["Weight"].shape[0]), c["X"].dtype)


@grad_op("bilinear_tensor_product_grad", infer=_grad_infer, dtype_slot="X")
def bilinear_tensor_product_grad(b: Binder) -> None:
    """dX = Σ dOut[:, i] · Weight[i] · Y; dY = Σ dOut[:, i] · X · Weight[i]; dWeight[i] = Xᵀ · (dOut[:, i] · Y)."""
    g, x, y = b["Out@GRAD"], b["X"], b["Y"]
    size, d, e = b["Weight"].shape
    each = g.reshape(len(g), size, 1)
    table = _table(b)
    if b.wants("Bias@GRAD"):
        b(np.add.reduce, g, 0, None, b["Bias@GRAD"], True)
    if b.wants("Y@GRAD"):
        b(np.add.reduce, made(b, np.multiply, _halves(b, table), each), 1, None, b["Y@GRAD"])
    wide = made(b, np.multiply, each, y.reshape(len(y), 1, e)).reshape(len(g), size * e)
    if b.wants("X@GRAD"):
        gemm(b, wide, table.T, b["X@GRAD"])
    if b.wants("Weight@GRAD"):
        slope = b.tmp((d, size * e), x.dtype)
        gemm(b, x.T, wide, slope)
        b(np.copyto, b["Weight@GRAD"], slope.reshape(d, size, e).transpose(1, 0, 2))
