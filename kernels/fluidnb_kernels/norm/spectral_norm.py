"""spectral_norm: a weight over its largest singular value."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb_kernels.cuda import THREADS, Source, ctype, each, lines_along, typed
from fluidnb_kernels.cuda.axis_reduction import fold
from fluidnb_kernels.cuda.dtypes import of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math import dot
from fluidnb_kernels.rules import fits, one_axis
from fluidnb_kernels.tensor.strided_copy import layout_of, move

CUDA = Source(__file__, "spectral_norm.cu", typed(("unit divided spectral_slope", ("float32", "float64"))))


def largest(w: Array, u: Array, v: Array, steps: int, eps: float) -> tuple[Array, Array, Array]:
    """The largest singular value of a matrix by power iteration from ``u``, with its two vectors.

    ``v`` is used where there are no steps. A step that changes no bit of ``u`` is the last: so would be all others.
    """
    for _ in range(steps):
        before = u
        v = w.T @ u
        v = v / (np.sqrt((v * v).sum()) + w.dtype.type(eps))
        u = w @ v
        u = u / (np.sqrt((u * u).sum()) + w.dtype.type(eps))
        if u.tobytes() == before.tobytes():
            break
    return u @ w @ v, u, v


def normalise(w: Array, u: Array, v: Array, steps: int, eps: float, axis: int, out: Array) -> None:
    """Write a weight over its largest singular value."""
    rows = np.moveaxis(w, axis, 0)
    value, _, _ = largest(rows.reshape(len(rows), -1), u, v, steps, eps)
    np.divide(w, value, out)


def normalise_grad(w: Array, u: Array, v: Array, steps: int, eps: float, axis: int, g: Array, dw: Array) -> None:
    """Write the gradient of `normalise`, the vectors taken as constants."""
    rows, g = np.moveaxis(w, axis, 0), np.moveaxis(g, axis, 0)
    value, u, v = largest(rows.reshape(len(rows), -1), u, v, steps, eps)
    share = (g * rows).sum() / value
    np.moveaxis(dw, axis, 0)[...] = (g - share * np.outer(u, v).reshape(rows.shape)) / value


def _infer(c: Context) -> None:
    w = c["Weight"]
    c.require(
        2 <= w.ndim <= 5, "Input(Weight) of spectral_norm must have 2 to 5 dimensions.",
        expected="the weight of a linear layer or a convolution", received=list(w.shape),
    )  # fmt: skip
    axis = one_axis(c, c.attr("dim"), w.ndim, "dim")
    rest = product([n for i, n in enumerate(w.shape) if i != axis])
    for slot, size in (("U", w.shape[axis]), ("V", rest)):
        fits(c, slot, (size,), f"Input({slot}) of spectral_norm must fit the weight as a matrix.")
    c.set("Out", w.shape, w.dtype, c.lod("Weight"))


def _how(b: Binder) -> tuple[int, float, int]:
    return b.attr("power_iters", 1), b.attr("eps", 1e-12), b.attr("dim", 0) % b["Weight"].ndim


@op(
    "spectral_norm",
    inputs={
        "Weight: float[n, m, …]": "the weight, 2 to 5 dimensions",
        "U: float[size of dimension dim]": "a vector near the left singular vector",
        "V: float[the other sizes together]": "a vector near the right one",
    },
    outputs={"Out": "the shape of Weight"},
    attrs={
        "dim": Attr("int", 0, "the dimension that makes the rows of the matrix"),
        "power_iters": Attr("int", 1, "steps of power iteration, from U", ge=0),
        "eps": Attr("float", 1e-12, "keeps the divisors from zero"),
    },
    cost="2 * power_iters * Weight + 2 * Weight",
    infer=_infer,
    grad=default_grad("Weight", "U", "V", "Out@GRAD", wrt=["Weight"]),
    cuda=FLOATS,
)
def spectral_norm(b: Binder) -> None:
    """Out = Weight / (uᵀ · W · v): v = Wᵀ u and u = W v, each over its length, as often as power_iters says.

    W is Weight as a matrix whose rows are dimension ``dim``. U and V stay as they are, and the gradient takes u and v
    for constants.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("spectral_norm", {"Weight": np.diag([2.0, 1.0]), "U": [1.0, 0.0], "V": [1.0, 0.0]})["Out"]
        array([[1. , 0. ],
               [0. , 0.5]])

    Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks" (2018); Fluid's
    spectral_norm_op.
    """
    if not b.on_cuda:
        return b(normalise, b["Weight"], b["U"], b["V"], *_how(b), b["Out"])
    w = of_dtype(b, b["Weight"], wide_dtype(b["Weight"].dtype))
    out = writing_as(b, b["Out"], w.dtype)
    each(b, CUDA, f"divided<{ctype(w.dtype)}>", w.size, w, _largest_on_cuda(b, w)[0], out)
    return written_as(b, b["Out"], out)


@grad_op("spectral_norm_grad", cuda=FLOATS)
def spectral_norm_grad(b: Binder) -> None:
    """dWeight = (dOut - Σ(dOut · Out) · u vᵀ) / σ."""
    if not b.on_cuda:
        return b(normalise_grad, b["Weight"], b["U"], b["V"], *_how(b), b["Out@GRAD"], b["Weight@GRAD"])
    wide = wide_dtype(b["Weight"].dtype)
    w, g = (of_dtype(b, b[slot], wide) for slot in ("Weight", "Out@GRAD"))
    value, u, v = _largest_on_cuda(b, w)
    along, dw = b.tmp((1,), wide), writing_as(b, b["Weight@GRAD"], wide)
    fold(b, dot.CUDA, dot.PRODUCTS, g, range(g.ndim), along, y=w)
    sizes = map(np.int64, lines_along(w.shape, _how(b)[2])[1:])
    each(b, CUDA, f"spectral_slope<{ctype(wide)}>", w.size, g, u, v, value, along, dw, *sizes)
    return written_as(b, b["Weight@GRAD"], dw)


def _largest_on_cuda(b: Binder, w: Array) -> tuple[Array, Array, Array]:
    """Emit the largest singular value of a weight [1] and its two vectors, as `largest` does."""
    steps, eps, axis = _how(b)
    u, v = (of_dtype(b, b[slot], w.dtype) for slot in ("U", "V"))
    h, n, rows = u.size, v.size, w
    if axis:
        rows = b.tmp((h, n), w.dtype)
        turned = np.moveaxis(layout_of(w), axis, 0)
        move(b, rows, w, layout_of(rows, turned.shape), turned)
    rows, of_u, of_v = rows.reshape(h, n), b.tmp((h, 1), w.dtype), b.tmp((n, 1), w.dtype)

    one_u, one_v = b.tmp((h,), w.dtype), b.tmp((n,), w.dtype)

    def unit(x: Array, y: Array) -> Array:
        b(CUDA[f"unit<{ctype(x.dtype)}>"], (1,), (THREADS,), 0, x, y, np.float64(eps), np.int64(x.size))
        return y

    for _ in range(steps):
        gemm(b, rows, u.reshape(h, 1), of_v, tx=True)
        v = unit(of_v, one_v)
        gemm(b, rows, v.reshape(n, 1), of_u)
        u = unit(of_u, one_u)
    if not steps:
        gemm(b, rows, v.reshape(n, 1), of_u)
    value = b.tmp((1,), w.dtype)
    fold(b, dot.CUDA, dot.PRODUCTS, of_u.reshape(h), [0], value, y=u)
    return value, u, v
