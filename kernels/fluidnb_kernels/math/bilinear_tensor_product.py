"""bilinear_tensor_product: numbers that are linear in each of two vectors."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import by_rows, ctype, each_line, of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.gemm import gemm as gemm_on_cuda
from fluidnb_kernels.emit import FLOATS, apply, reading
from fluidnb_kernels.math.matrix_products import CUDA
from fluidnb_kernels.math.mul import gemm
from fluidnb_kernels.tensor import strided_copy


def _infer(c: Context) -> None:
    c.check_inputs()
    x, w = c["X"].shape, c["Weight"].shape
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
    return half.reshape(len(half), size, e)


@op(
    "bilinear_tensor_product",
    inputs={"X: float[n, d]": "", "Y: float[n, e]": "", "Weight: float[size, d, e]": "", "Bias?: float[1, size]": ""},
    outputs={"Out": "[n, size]"},
    cost="X[:1] * Weight + Out * Y[1:]",
    infer=_infer,
    grad=default_grad("X", "Y", "Weight", "Out@GRAD"),
    cuda=FLOATS,
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
    if b.on_cuda:
        x, y, weight = _wide(b, "X", "Y", "Weight")
        size, _, e = weight.shape
        bias = _wide(b, "Bias")[0] if b.has("Bias") else None
        out = writing_as(b, b["Out"], x.dtype)
        operands = _halves_on_cuda(b, x, weight), y, bias, out, np.int64(size)
        each_line(b, CUDA, f"bilinear<{ctype(x.dtype)}>", out.size, e, 1, *operands)
        return written_as(b, b["Out"], out)
    out, y = b["Out"], b["Y"]
    half = _halves(b, _table(b))
    b(np.add.reduce, apply(b, np.multiply, half, y.reshape(len(y), 1, y.shape[1])), -1, None, out)
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
        b(np.add.reduce, apply(b, np.multiply, _halves(b, table), each), 1, None, b["Y@GRAD"])
    wide = apply(b, np.multiply, each, y.reshape(len(y), 1, e)).reshape(len(g), size * e)
    if b.wants("X@GRAD"):
        gemm(b, wide, table.T, b["X@GRAD"])
    if b.wants("Weight@GRAD"):
        slope = b.tmp((d, size * e), x.dtype)
        gemm(b, x.T, wide, slope)
        b(np.copyto, b["Weight@GRAD"], slope.reshape(d, size, e).transpose(1, 0, 2))


def _wide(b: Binder, *slots: str) -> list[Array]:
    """Inputs in the precision in which sums are made."""
    return [of_dtype(b, b[slot], wide_dtype(b[slot].dtype)) for slot in slots]


def _product(b: Binder, x: Array, y: Array, out: Array, tx: bool = False, ty: bool = False) -> None:
    """Emit a product, or zeros where there is nothing to add up."""
    if x.size:
        gemm_on_cuda(b, x, y, out, tx, ty)
    else:
        strided_copy.fill(b, out)


def _halves_on_cuda(b: Binder, x: Array, weight: Array) -> Array:
    """Emit X · Weight[i] for all i [n, size, e]."""
    half = b.tmp((len(x), weight.shape[0], weight.shape[2]), x.dtype)
    if x.size:
        gemm_on_cuda(b, x, weight, half.transpose(1, 0, 2))
    else:
        strided_copy.fill(b, half)
    return half


@kernel("bilinear_tensor_product_grad", place="cuda", dtypes=FLOATS)
def bilinear_tensor_product_grad_on_cuda(b: Binder) -> None:
    x, y, weight, g = _wide(b, "X", "Y", "Weight", "Out@GRAD")
    (size, d, e), n, t = weight.shape, len(x), ctype(x.dtype)
    numbers = np.int64(size), np.int64(e)
    slopes = {s: writing_as(b, b[s], x.dtype) for s in ("X@GRAD", "Y@GRAD", "Weight@GRAD", "Bias@GRAD") if b.wants(s)}
    if "Bias@GRAD" in slopes:
        strided_copy.fold(b, g, slopes["Bias@GRAD"], g.shape, [0])
    if "Y@GRAD" in slopes:
        half = _halves_on_cuda(b, x, weight)
        by_rows(b, CUDA, f"bilinear_y<{t}>", n, e, half, g, slopes["Y@GRAD"], *numbers)
    outer = b.tmp((n, size, e), x.dtype)
    if "X@GRAD" in slopes or "Weight@GRAD" in slopes:
        by_rows(b, CUDA, f"bilinear_outer<{t}>", n * size, e, g, y, outer, *numbers)
    if "X@GRAD" in slopes:
        table = b.tmp((d, size * e), x.dtype)
        to, of = strided_copy.lay(table, (d, size, e)), strided_copy.lay(weight).transpose(1, 0, 2)
        strided_copy.move(b, table, weight, to, of)
        _product(b, outer.reshape(n, size * e), table, slopes["X@GRAD"], ty=True)
    if "Weight@GRAD" in slopes:
        _product(b, x, outer.transpose(1, 0, 2), slopes["Weight@GRAD"], tx=True)
    for slot, given in slopes.items():
        written_as(b, b[slot], given)
