"""group_norm: the channels of an image normalised in groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op, product
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.norm.emit import Axes, emit_affine, emit_inverse, emit_moments, emit_norm_grad
from fluidnb_kernels.norm.launch import Lines, inverses, vector
from fluidnb_kernels.sliding import CHANNEL_LAST, channel_first, split_shape

Array = Any


def _infer(c: Context) -> None:
    x, groups, layout = c["X"], c.attr("groups"), c.attr("data_layout")
    c.require(
        x.ndim >= 2, "The input of group_norm must have at least 2 dimensions.",
        expected="[batch, channels, …]", received=list(x.shape),
    )  # fmt: skip
    n, channels, _ = split_shape(x.shape, layout)
    c.require(
        channels < 0 or 0 < groups <= channels and channels % groups == 0,
        "The number of groups of group_norm must divide the number of channels.",
        expected=f"a divisor of {channels}", received=groups,
    )  # fmt: skip
    for slot in ("Scale", "Bias"):
        v = c[slot]
        c.require(
            v is None or v.ndim == 1 and (v.size == channels or -1 in (v.size, channels)),
            f"{slot} of group_norm must have one element for each channel.",
            expected=f"[{channels}]", received=None if v is None else list(v.shape),
        )  # fmt: skip
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("Mean", "Variance"):
        c.set(slot, (n, groups), x.dtype)


class _Parts:
    """X and what belongs to it as [n, groups, channels of a group, …]."""

    def __init__(self, b: Binder) -> None:
        self.b, self.layout = b, b.attr("data_layout", "NCHW")
        n, c, sizes = split_shape(b["X"].shape, self.layout)
        groups = b.attr("groups")
        self.shape = (n, groups, c // groups, *sizes)
        around = tuple(range(3, len(self.shape)))
        self.axes: Axes = (2, *around)
        self.shared: Axes = (0, *around)

    def image(self, slot: str) -> Array:
        """An image; splitting an axis is always a view."""
        return None if self.b[slot] is None else channel_first(self.b[slot], self.layout).reshape(self.shape)

    def vector(self, slot: str) -> Array:
        """A vector over the channels."""
        shape = tuple(1 if i in self.shared else n for i, n in enumerate(self.shape))
        return None if self.b[slot] is None else self.b[slot].reshape(shape)

    def moment(self, slot: str) -> Array:
        """A number for each group."""
        shape = tuple(1 if i in self.axes else n for i, n in enumerate(self.shape))
        found = self.b[slot]
        return self.b.tmp(shape, self.b["X"].dtype) if found is None else found.reshape(shape)


@op(
    "group_norm",
    inputs={
        "X: float[n, c, …]": "[n, …, c] with data_layout NHWC",
        "Scale?: float[c]": "1 where it is left out",
        "Bias?: float[c]": "0 where it is left out",
    },
    outputs={"Y": "X normalised", "Mean~": "[n, groups]", "Variance~": "[n, groups], biased"},
    attrs={
        "epsilon": Attr(
            "float", 1e-5, "keeps the divisor from zero",
            check=lambda e: None if 0 <= e <= 1 else "'epsilon' in Op(GroupNorm) should be between 0.0 and 1.0f.",
        ),
        "groups": Attr(
            "int", doc="how many groups the channels fall into",
            check=lambda g: None if g > 0 else "'groups' in Op(GroupNorm) should be greater than zero.",
        ),
        "data_layout": Attr("string", "NCHW", "where the channels are"),
    },
    cost="4 * X",
    infer=_infer,
    grad=default_grad("X", "Scale", "Bias", "Y", "Mean", "Variance", "Y@GRAD"),
)  # fmt: skip
def group_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with the moments of each image's groups of channels.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([1.0, 3.0, 0.0, 4.0]).reshape(1, 4, 1, 1)
        >>> run_op("group_norm", {"X": x}, {"groups": 2})["Y"].ravel().round(3)
        array([-1.,  1., -1.,  1.])

    Source: Wu and He, "Group Normalization" (ECCV 2018); Fluid's group_norm_op.
    """
    parts = _Parts(b)
    x, mean, variance = parts.image("X"), parts.moment("Mean"), parts.moment("Variance")
    centred, inverse = b.like(x), b.tmp(mean.shape, mean.dtype)
    emit_moments(b, x, parts.axes, mean, variance, centred)
    emit_inverse(b, variance, b.attr("epsilon"), inverse)
    emit_affine(b, centred, inverse, parts.vector("Scale"), parts.vector("Bias"), parts.image("Y"))


@grad_op("group_norm_grad")
def group_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂ and dBias = Σ dY; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ."""
    parts = _Parts(b)
    x, mean, variance = parts.image("X"), parts.moment("Mean"), parts.moment("Variance")
    centred, inverse = b.like(x), b.tmp(mean.shape, mean.dtype)
    b(np.subtract, x, mean, out=centred)
    emit_inverse(b, variance, b.attr("epsilon", 1e-5), inverse)
    emit_norm_grad(
        b, centred, inverse, parts.vector("Scale"), parts.image("Y@GRAD"), parts.axes, parts.shared,
        parts.image("X@GRAD"), parts.vector("Scale@GRAD"), parts.vector("Bias@GRAD"),
    )  # fmt: skip


def _lines(b: Binder) -> Lines:
    """The groups of all images."""
    layout, groups = b.attr("data_layout", "NCHW"), b.attr("groups")
    n, channels, sizes = split_shape(b["X"].shape, layout)
    inner = product(sizes)
    return Lines(n * groups, channels // groups * inner, groups, inner, layout in CHANNEL_LAST)


@kernel("group_norm", place="cuda", dtypes=FLOATS)
def group_norm_on_cuda(b: Binder) -> None:
    """One launch."""
    _lines(b).forward(b, "Mean", "Variance")


@kernel("group_norm_grad", place="cuda", dtypes=FLOATS)
def group_norm_grad_on_cuda(b: Binder) -> None:
    """A launch for X, and two for Scale and Bias."""
    inverse = inverses(b, vector(b, "Variance", b["X"]), b.attr("epsilon", 1e-5))
    _lines(b).backward(b, vector(b, "Mean", b["X"]), inverse)
