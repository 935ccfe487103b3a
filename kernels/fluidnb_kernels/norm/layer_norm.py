"""layer_norm: each row normalised by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op, product
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.formulas import Formulas
from fluidnb_kernels.norm.emit import LARGEST_EPSILON, emit_affine, emit_inverse, emit_moments, emit_norm_grad
from fluidnb_kernels.norm.launch import Lines, inverses, vector
from fluidnb_kernels.norm.second_gradients import View, define, second_maker
from fluidnb_kernels.views import reading, writing, written


def _rows(c: Context) -> tuple[int, int]:
    """How many rows X has, and how long they are (-1 unknown)."""
    x, begin = c["X"], c.attr("begin_norm_axis", 1)
    return product(x.shape[:begin]), product(x.shape[begin:])


def _infer(c: Context) -> None:
    x, begin = c["X"], c.attr("begin_norm_axis")
    c.require(
        begin < x.ndim, "'begin_norm_axis' must be less than the dimensions of X.",
        expected=f"< {x.ndim}", received=begin,
    )  # fmt: skip
    right = product(x.shape[begin:])
    for slot in ("Scale", "Bias"):
        v = c[slot]
        c.require(
            v is None or v.ndim == 1 and (v.size == right or -1 in (v.size, right)),
            f"{slot} of layer_norm must have one element for each element of a row.",
            expected=f"[{right}]", received=None if v is None else list(v.shape),
            hint=f"a row is what X has from dimension begin_norm_axis = {begin} on.",
        )  # fmt: skip
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("Mean", "Variance"):
        c.set(slot, x.shape[:begin], x.dtype)


def _check_epsilon(value: float) -> str | None:
    fits = 0 <= value <= LARGEST_EPSILON
    return None if fits else "'epsilon' in Op(LayerNorm) should be between 0.0 and 0.001."


@op(
    "layer_norm",
    inputs={
        "X: float": "any shape with more than begin_norm_axis dimensions",
        "Scale?: float[length of a row]": "1 where it is left out",
        "Bias?: float[length of a row]": "0 where it is left out",
    },
    outputs={"Y": "X normalised", "Mean~": "the leading sizes of X", "Variance~": "the same, biased"},
    attrs={
        "epsilon": Attr("float", 1e-5, "keeps the divisor from zero", check=_check_epsilon),
        "begin_norm_axis": Attr("int", 1, "the dimensions before this one make rows, the others are normalised", gt=0),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    },
    cost="4 * X",
    infer=_infer,
    grad=default_grad("X", "Scale", "Bias", "Mean", "Variance", "Y@GRAD"),
)  # fmt: skip
def layer_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with mean and variance of each row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("layer_norm", {"X": np.array([[1.0, 3.0], [0.0, 4.0]])})["Y"].round(3)
        array([[-1.,  1.],
               [-1.,  1.]])

    Source: Ba, Kiros and Hinton, "Layer Normalization" (2016); Fluid's layer_norm_op.
    """
    left, right = _rows(b)
    x, dtype = reading(b, b["X"], (left, right)), b["X"].dtype
    mean, variance = (
        (b.tmp((left, 1), dtype) if b[s] is None else b[s].reshape(left, 1)) for s in ("Mean", "Variance")
    )
    centred, inverse = b.like(x), b.tmp((left, 1), dtype)
    emit_moments(b, x, (1,), mean, variance, centred)
    emit_inverse(b, variance, b.attr("epsilon"), inverse)
    y = writing(b, b["Y"], (left, right))
    scale, bias = _factors(b, right)
    emit_affine(b, centred, inverse, scale, bias, y)
    written(b, b["Y"], y)


def _factors(b: Binder, right: int) -> list[Any]:
    return [None if b[s] is None else b[s].reshape(1, right) for s in ("Scale", "Bias")]


@grad_op("layer_norm_grad", grad=second_maker("layer_norm", {"Mean": "Mean", "Variance": "Variance"}))
def layer_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂ and dBias = Σ dY over rows; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ."""
    left, right = _rows(b)
    x, dtype = reading(b, b["X"], (left, right)), b["X"].dtype
    g = reading(b, b["Y@GRAD"], (left, right))
    centred, inverse = b.like(x), b.tmp((left, 1), dtype)
    b(np.subtract, x, b["Mean"].reshape(left, 1), out=centred)
    emit_inverse(b, b["Variance"].reshape(left, 1), b.attr("epsilon", 1e-5), inverse)
    dx = None if b["X@GRAD"] is None else writing(b, b["X@GRAD"], (left, right))
    dscale, dbias = (None if b[s] is None else b[s].reshape(1, right) for s in ("Scale@GRAD", "Bias@GRAD"))
    emit_norm_grad(b, centred, inverse, _factors(b, right)[0], g, (1,), (0,), dx, dscale, dbias)
    if dx is not None:
        written(b, b["X@GRAD"], dx)


def _inverse(b: Binder, f: Formulas) -> Any:
    epsilon = b.attr("epsilon", 1e-5)
    if f.on_cuda:
        return inverses(b, vector(b, "Variance", b["X"]), epsilon)
    variance = f.read(b["Variance"])
    out = b.like(variance)
    emit_inverse(b, variance, epsilon, out)
    return out


def _view(b: Binder) -> View:
    left, right = _rows(b)
    return View((left, right), (1,), (0,), (left, 1))


define("layer_norm", _view, "Mean", _inverse)


@kernel("layer_norm", place="cuda", dtypes=FLOATS)
def layer_norm_on_cuda(b: Binder) -> None:
    """One launch."""
    Lines(*_rows(b)).forward(b, "Mean", "Variance")


@kernel("layer_norm_grad", place="cuda", dtypes=FLOATS)
def layer_norm_grad_on_cuda(b: Binder) -> None:
    """A launch for X, and two for Scale and Bias."""
    inverse = inverses(b, vector(b, "Variance", b["X"]), b.attr("epsilon", 1e-5))
    Lines(*_rows(b)).backward(b, vector(b, "Mean", b["X"]), inverse)
