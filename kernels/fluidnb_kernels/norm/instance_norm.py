"""instance_norm: each channel of each image normalised by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op, product
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.norm.emit import Axes, emit_affine, emit_inverse, emit_moments, emit_norm_grad
from fluidnb_kernels.norm.launch import Lines, vector
from fluidnb_kernels.norm.second_gradients import SAVED, View, define, second_maker

Array = Any


def _infer(c: Context) -> None:
    x = c["X"]
    c.require(
        2 <= x.ndim <= 5, "The input of instance_norm must have 2 to 5 dimensions.",
        expected="[batch, channels, …]", received=list(x.shape),
    )  # fmt: skip
    n, channels = x.shape[:2]
    for slot in ("Scale", "Bias"):
        v = c[slot]
        c.require(
            v is None or v.ndim == 1 and (v.size == channels or -1 in (v.size, channels)),
            f"{slot} of instance_norm must have one element for each channel.",
            expected=f"[{channels}]", received=None if v is None else list(v.shape),
        )  # fmt: skip
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("SavedMean", "SavedVariance"):
        c.set(slot, (product((n, channels)),), x.dtype)


def _axes(x: Array) -> Axes:
    return tuple(range(2, x.ndim))


def _vector(b: Binder, slot: str, x: Array) -> Array:
    """A vector over the channels, to go with an image."""
    return None if b[slot] is None else b[slot].reshape(1, x.shape[1], *[1] * (x.ndim - 2))


def _moment(b: Binder, slot: str, x: Array) -> Array:
    """A number for each channel of each image, to go with it."""
    shape = (*x.shape[:2], *[1] * (x.ndim - 2))
    return b.tmp(shape, x.dtype) if b[slot] is None else b[slot].reshape(shape)


@op(
    "instance_norm",
    inputs={
        "X: float[n, c, …]": "",
        "Scale?: float[c]": "1 where it is left out",
        "Bias?: float[c]": "0 where it is left out",
    },
    outputs={
        "Y": "X normalised",
        "SavedMean~": "[n · c]",
        "SavedVariance~": "[n · c]: 1 / sqrt(biased variance + epsilon)",
    },
    attrs={"epsilon": Attr("float", 1e-5, "keeps the divisor from zero", ge=0)},
    cost="4 * X",
    infer=_infer,
    grad=default_grad("X", "Scale", "SavedMean", "SavedVariance", "Y@GRAD", wrt=["X", "Scale", "Bias"]),
)
def instance_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with the moments of each channel of each image.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([1.0, 3.0, 0.0, 4.0]).reshape(1, 2, 2)
        >>> run_op("instance_norm", {"X": x})["Y"].ravel().round(3)
        array([-1.,  1., -1.,  1.])

    Source: Ulyanov et al., "Instance Normalization: The Missing Ingredient for Fast Stylization" (2016); Paddle's
    instance_norm_op.
    """
    x = b["X"]
    mean, inverse = _moment(b, "SavedMean", x), _moment(b, "SavedVariance", x)
    centred, variance = b.like(x), b.tmp(mean.shape, mean.dtype)
    emit_moments(b, x, _axes(x), mean, variance, centred)
    emit_inverse(b, variance, b.attr("epsilon"), inverse)
    emit_affine(b, centred, inverse, _vector(b, "Scale", x), _vector(b, "Bias", x), b["Y"])


def _grad_infer(c: Context) -> None:
    x = c["X"]
    c.set("X@GRAD", x.shape, x.dtype, c.lod("X"))
    for slot in ("Scale@GRAD", "Bias@GRAD"):
        c.set(slot, (x.shape[1],), x.dtype)


@grad_op("instance_norm_grad", infer=_grad_infer, grad=second_maker("instance_norm", SAVED))
def instance_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂ and dBias = Σ dY; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ."""
    x = b["X"]
    mean, inverse = _moment(b, "SavedMean", x), _moment(b, "SavedVariance", x)
    centred = b.like(x)
    b(np.subtract, x, mean, out=centred)
    emit_norm_grad(
        b, centred, inverse, _vector(b, "Scale", x), b["Y@GRAD"], _axes(x), (0, *_axes(x)), b["X@GRAD"],
        _vector(b, "Scale@GRAD", x), _vector(b, "Bias@GRAD", x),
    )  # fmt: skip


def _view(b: Binder) -> View:
    shape = b["X"].shape
    return View(shape, _axes(b["X"]), (0, *_axes(b["X"])), (*shape[:2], *[1] * (len(shape) - 2)))


define("instance_norm", _view)


def _lines(b: Binder) -> Lines:
    """The channels of all images."""
    n, channels, *sizes = b["X"].shape
    return Lines(n * channels, product(sizes), channels, product(sizes))


@kernel("instance_norm", place="cuda", dtypes=FLOATS)
def instance_norm_on_cuda(b: Binder) -> None:
    """One launch."""
    _lines(b).forward(b, "SavedMean", "SavedVariance", inverse=True)


@kernel("instance_norm_grad", place="cuda", dtypes=FLOATS)
def instance_norm_grad_on_cuda(b: Binder) -> None:
    """A launch for X, and two for Scale and Bias."""
    x = b["X"]
    _lines(b).backward(b, vector(b, "SavedMean", x), vector(b, "SavedVariance", x))
