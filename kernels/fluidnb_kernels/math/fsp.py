"""fsp: how the channels of two feature maps go together."""

from __future__ import annotations

import math

import numpy as np

from fluidnb.op import Array, Binder, default_grad, grad_op, op
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math.matrix_products import Side, multiplied
from fluidnb_kernels.rules import checked


def products(left: Array, right: Array, turned: bool, out: Array) -> None:
    """Write the means over pixels of products of channels; ``turned``, of gradients of products and channels."""
    n, b, height, width = right.shape
    flat = right.reshape(n, b, height * width)
    if turned:
        out[...] = (np.matmul(left, flat) / (height * width)).reshape(out.shape)
    else:
        out[...] = np.matmul(left.reshape(n, -1, height * width), flat.swapaxes(1, 2)) / (height * width)


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
