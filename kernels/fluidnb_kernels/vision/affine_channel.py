"""affine_channel: each channel of an image times a factor plus a summand."""

from math import prod

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.cuda import by_rows, ctype, wide_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.norm.launch import Channels, vector
from fluidnb_kernels.rules import same_shape, vectors
from fluidnb_kernels.sliding import CHANNEL_LAST, channel_first
from fluidnb_kernels.tensor.strided_copy import fill
from fluidnb_kernels.vision.launch import CUDA


def _check(c: Context) -> None:
    """Require channels, and vectors that have an element for each."""
    x = c["X"]
    c.require(
        x.ndim >= 2, f"The input of {c.definition.type} must have channels.", expected="[batch, channels, …]",
        received=list(x.shape),
    )  # fmt: skip
    vectors(c, ("Scale", "Bias"), x.shape[-1 if c.attr("data_layout", "") == "NHWC" else 1])


def _infer(c: Context) -> None:
    _check(c)
    x = c["X"]
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def _images(b: Binder, *slots: str) -> list[Array]:
    """Images with the channel as their second dimension."""
    return [None if b[s] is None else channel_first(b[s], b.attr("data_layout", "")) for s in slots]


def _around(x: Array) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _vector(x: Array, v: Array) -> Array:
    """A vector over the channels, to go with an image."""
    return v.reshape([1 if i != 1 else v.size for i in range(x.ndim)])


@op(
    "affine_channel",
    inputs={
        "X: float[n, c, …]": "[n, …, c] with data_layout NHWC",
        "Scale: float[c]": "factors",
        "Bias: float[c]": "summands",
    },
    outputs={"Out": "the shape of X"},
    attrs={"data_layout": Attr("string", "AnyLayout", "NHWC where the channels come last; else they are second")},
    cost="X",
    infer=_infer,
    grad=default_grad("X", "Scale", "Out@GRAD", wrt=["X", "Scale", "Bias"]),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def affine_channel(b: Binder) -> None:
    """Out = X · Scale + Bias, channel by channel: batch normalisation with moments that stay.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("affine_channel", {"X": [[1.0, 2.0]], "Scale": [2.0, 3.0], "Bias": [0.0, 1.0]})["Out"]
        array([[2., 7.]])

    Source: Fluid's affine_channel_op.
    """
    if b.on_cuda:
        return _emit_affine(b, b["X"], vector(b, "Bias", b["X"]), b["Out"])
    x, out = _images(b, "X", "Out")
    t = b.like(x)
    b(np.multiply, x, _vector(x, b["Scale"]), out=t)
    b(np.add, t, _vector(x, b["Bias"]), out=out)


def _grad_infer(c: Context) -> None:
    x, scale = c["X"], c["Scale"]
    _check(c)
    same_shape(c, "X", "Out@GRAD")
    c.set("X@GRAD", x.shape, x.dtype, c.lod("X"))
    for slot in ("Scale@GRAD", "Bias@GRAD"):
        c.set(slot, scale.shape, scale.dtype)


@grad_op("affine_channel_grad", infer=_grad_infer, cuda=FLOATS)
def affine_channel_grad(b: Binder) -> None:
    """dX = dOut · Scale; dScale = Σ dOut · X and dBias = Σ dOut over everything but the channel."""
    if b.on_cuda:
        x, g, dx = b["X"], b["Out@GRAD"], b["X@GRAD"]
        if dx is not None:
            _emit_affine(b, g, None, dx)
        if b.wants("Scale@GRAD") or b.wants("Bias@GRAD"):
            parts = _channels(b, x)
            mean, inverse = (b.tmp((parts.channels,), wide_dtype(x.dtype)) for _ in range(2))
            fill(b, mean, 0)
            fill(b, inverse, 1)
            parts.slopes(b, x, g, mean, inverse)
        return
    x, g, dx = _images(b, "X", "Out@GRAD", "X@GRAD")
    if dx is not None:
        b(np.multiply, g, _vector(x, b["Scale"]), out=dx)
    if b.wants("Scale@GRAD"):
        t = b.like(x)
        b(np.multiply, g, x, out=t)
        b(np.add.reduce, t, _around(x), None, b["Scale@GRAD"])
    if b.wants("Bias@GRAD"):
        b(np.add.reduce, g, _around(x), None, b["Bias@GRAD"])


def _channels(b: Binder, x: Array) -> Channels:
    """Images as rows of channels, and the number of adjacent elements of a channel."""
    if b.attr("data_layout", "") in CHANNEL_LAST:
        return Channels(prod(x.shape[:-1]), x.shape[-1], 1)
    return Channels(x.shape[0], x.shape[1], prod(x.shape[2:]))


def _emit_affine(b: Binder, x: Array, bias: Array | None, out: Array) -> None:
    scale, parts = vector(b, "Scale", x), _channels(b, x)
    last = parts.inner == 1
    rows, width = (parts.rows, parts.channels) if last else (parts.rows * parts.channels, parts.inner)
    by_rows(
        b, CUDA, f"affine<{ctype(x.dtype)}>", rows, width, x, scale, scale if bias is None else bias, out,
        np.int64(parts.channels), np.int64(width), np.int32(last), np.int32(bias is not None),
    )  # fmt: skip
