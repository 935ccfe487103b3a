"""bilinear_tensor_product, conv_shift and fsp: results that are linear in each of two tensors."""

import math

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import by_rows, ctype, each, each_line, of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.gemm import gemm as gemm_on_cuda
from fluidnb_kernels.emit import FLOATS, apply, reading
from fluidnb_kernels.math.matmul import gemm
from fluidnb_kernels.math.matrix_products import CUDA, Side, multiplied
from fluidnb_kernels.rules import checked
from fluidnb_kernels.tensor import strided_copy


def _bilinear_tensor_product_infer(c: Context) -> None:
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
    infer=_bilinear_tensor_product_infer,
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
        to, of = strided_copy.layout_of(table, (d, size, e)), strided_copy.layout_of(weight).transpose(1, 0, 2)
        strided_copy.move(b, table, weight, to, of)
        _product(b, outer.reshape(n, size * e), table, slopes["X@GRAD"], ty=True)
    if "Weight@GRAD" in slopes:
        _product(b, x, outer.transpose(1, 0, 2), slopes["Weight@GRAD"], tx=True)
    for slot, given in slopes.items():
        written_as(b, b[slot], given)


def _conv_shift_infer(c: Context) -> None:
    c.check_inputs()
    x, y = c["X"].shape, c["Y"].shape
    c.require(
        y[1] < 0 or y[1] % 2 == 1 and (x[1] < 0 or y[1] <= x[1]),
        "The width of Input(Y) of conv_shift must be odd and not larger than that of Input(X).",
        expected=f"1, 3, … up to {x[1]}", received=y[1],
    )  # fmt: skip
    c.set("Out", x, c["X"].dtype, c.lod("X"))


def _around(b: Binder, rows: Array, sign: int) -> Array:
    """Emit the neighbours of each element of a row, [n, m, k]: j to the right, or to the left with sign -1."""
    m, k = rows.shape[1], b["Y"].shape[1]
    index = (np.arange(m)[:, None] + sign * (np.arange(k) - (k - 1) // 2)) % m
    out = b.tmp((len(rows), m, k), rows.dtype)
    b(np.ndarray.take, rows, index, 1, out, "clip")
    return out


def _sum(b: Binder, around: Array, weights: Array, out: Array) -> None:
    b(np.matmul, around, weights.reshape(*weights.shape, 1), out=out.reshape(*out.shape, 1))


@op(
    "conv_shift",
    inputs={"X: float[n, m]": "", "Y: float[n, k]": "k odd and not larger than m"},
    outputs={"Out": "[n, m]"},
    cost="X * Y[1:]",
    infer=_conv_shift_infer,
    grad=default_grad("X", "Y", "Out@GRAD"),
    cuda=FLOATS,
)
def conv_shift(b: Binder) -> None:
    """Out[:, i] = Σ X[:, (i + j) mod m] · Y[:, j + (k - 1) / 2], for j from -(k - 1) / 2 to (k - 1) / 2.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("conv_shift", {"X": [[1.0, 2.0, 3.0]], "Y": [[0.0, 0.0, 1.0]]})["Out"]
        array([[2., 3., 1.]])

    Source: Fluid's conv_shift_op; Graves et al., "Neural Turing Machines" (2014), section 3.3.2.
    """
    if b.on_cuda:
        return _shifted(b, b["X"], 1, b["Out"])
    _sum(b, _around(b, b["X"], 1), b["Y"], b["Out"])


@grad_op("conv_shift_grad", cuda=FLOATS)
def conv_shift_grad(b: Binder) -> None:
    """dX = dOut moved the other way by Y; dY[:, j] = Σ dOut[:, i] · X[:, (i + j) mod m]."""
    if b.on_cuda:
        x, g, dy = b["X"], b["Out@GRAD"], b["Y@GRAD"]
        if b.wants("X@GRAD"):
            _shifted(b, g, -1, b["X@GRAD"])
        if dy is not None:
            name = f"shifted_weights<{ctype(dy.dtype)}>"
            each_line(b, CUDA, name, dy.size, x.shape[1], 1, x, g, dy, np.int64(dy.shape[1]))
        return
    g = b["Out@GRAD"]
    if b.wants("X@GRAD"):
        _sum(b, _around(b, g, -1), b["Y"], b["X@GRAD"])
    if b.wants("Y@GRAD"):
        _sum(b, _around(b, b["X"], 1).swapaxes(1, 2), g, b["Y@GRAD"])


def _shifted(b: Binder, rows: Array, step: int, out: Array) -> None:
    """Emit rows shifted by Y: step 1 takes elements to the right, step -1 to the left."""
    m, k = (np.int64(b[slot].shape[1]) for slot in ("X", "Y"))
    each(b, CUDA, f"shifted<{ctype(out.dtype)}>", out.size, rows, b["Y"], out, np.int32(step), m, k)


def products(left: Array, right: Array, turned: bool, out: Array) -> None:
    """Write the means over pixels of products of channels; ``turned``, of gradients of products and channels."""
    n, b, height, width = right.shape
    flat = right.reshape(n, b, height * width)
    if turned:
        out[...] = (np.matmul(left, flat) / (height * width)).reshape(out.shape)
    else:
        out[...] = np.matmul(left.reshape(n, left.shape[1], height * width), flat.swapaxes(1, 2)) / (height * width)


@op(
    "fsp",
    inputs={"X: float[N, C1, H, W]": "features", "Y: float[N, C2, H, W]": "features"},
    outputs={"Out": "[N, C1, C2]"},
    cost="X * Y[1:2]",
    infer=checked(lambda c: c.set("Out", (*c["X"].shape[:2], c["Y"].shape[1]), c["X"].dtype)),
    grad=default_grad("X", "Y", "Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def fsp(b: Binder) -> None:
    """Out[n, i, j] = the mean over all pixels of X[n, i] · Y[n, j].

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("fsp", {"X": np.ones((1, 2, 3, 3)), "Y": np.ones((1, 1, 3, 3))})["Out"].ravel()
        array([1., 1.])

    Source: Yim and others, "A Gift from Knowledge Distillation" (CVPR 2017); Fluid's fsp_op.
    """
    if b.on_cuda:
        x, y = b["X"], b["Y"]
        return multiplied(b, _flat(x), _flat(y).turned, b["Out"], _share(x))
    b(products, b["X"], b["Y"], False, b["Out"])


@grad_op("fsp_grad", cuda=FLOATS)
def fsp_grad(b: Binder) -> None:
    """dX = dOut · Y / (H W); dY = dOutᵀ · X / (H W)."""
    if b.on_cuda:
        x, y, g = b["X"], b["Y"], Side(b["Out@GRAD"])
        for slot, left, right in (("X@GRAD", g, y), ("Y@GRAD", g.turned, x)):
            if b.wants(slot):
                multiplied(b, left, _flat(right), _flat(b[slot]).array, _share(x))
        return
    g = b["Out@GRAD"]
    if b.wants("X@GRAD"):
        b(products, g, b["Y"], True, b["X@GRAD"])
    if b.wants("Y@GRAD"):
        b(products, g.swapaxes(1, 2), b["X"], True, b["Y@GRAD"])


def _flat(x: Array) -> Side:
    """A feature map as [batch, channels, pixels]."""
    return Side(x.reshape(*x.shape[:2], x.shape[2] * x.shape[3]))


def _share(x: Array) -> float:
    """The weight of one pixel."""
    pixels = x.shape[2] * x.shape[3]
    return 1 / pixels if pixels else math.inf
