"""dot, cos_sim and squared_l2_distance: how alike the rows of two matrices are."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.emit import FLOATS, made
from fluidnb_kernels.rules import agree, same_shape

Array = Any


def _dot_infer(c: Context) -> None:
    same_shape(c, "X", "Y")
    x = c["X"]
    c.require(x.ndim in (1, 2), "Input(X) of dot must have one or two dimensions.", received=list(x.shape))
    c.set("Out", x.shape[:-1] or (1,), x.dtype, c.lod("X"))


@op(
    "dot",
    inputs={"X": "[N] or [M, N]", "Y": "same shape"},
    outputs={"Out": "[1] or [M]: the products of rows"},
    infer=_dot_infer,
    grad=default_grad("X", "Y", "Out@GRAD"),
)
def dot(b: Binder) -> None:
    """Out = sum(X · Y) along the last dimension.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("dot", {"X": [[1.0, 2.0]], "Y": [[3.0, 4.0]]})["Out"]
        array([11.])

    Source: Paddle's dot_op.
    """
    x, out = b["X"], b["Out"]
    b(np.add.reduce, made(b, np.multiply, x, b["Y"]), -1, None, out.reshape(x.shape[:-1]))


@grad_op("dot_grad", dtype_slot="X")
def dot_grad(b: Binder) -> None:
    """dX = dOut · Y; dY = dOut · X."""
    g = b["Out@GRAD"].reshape(*b["X"].shape[:-1], 1)
    for slot, other in (("X@GRAD", b["Y"]), ("Y@GRAD", b["X"])):
        if b.wants(slot):
            b(np.multiply, g, other, out=b[slot])


def _pair_rule(c: Context) -> None:
    """Both have as many columns, and as many rows unless Y has one."""
    x, y, name = c["X"], c["Y"], c.definition.type
    c.require(x.ndim >= 2, f"The rank of Input(X) of {name} must not be less than 2.", received=list(x.shape))
    fits = agree(x.shape[1:], y.shape[1:]) and (y.shape[0] in (1, -1, x.shape[0]) or x.shape[0] == -1)
    c.require(
        fits, f"Input(X) and Input(Y) of {name} do not fit.",
        expected=f"{list(x.shape)}, or one row of it", received=list(y.shape),
    )  # fmt: skip


def _cos_infer(c: Context) -> None:
    _pair_rule(c)
    x, y = c["X"], c["Y"]
    c.set("Out", (x.shape[0], 1), x.dtype, c.lod("X"))
    c.set("XNorm", (x.shape[0], 1), x.dtype)
    c.set("YNorm", (y.shape[0], 1), x.dtype)


def _rows(x: Array) -> Array:
    return x.reshape(len(x), -1)


def _sum_rows(b: Binder, x: Array, out: Array | None = None) -> Array:
    """Emit the sum of each row [N, 1]."""
    total = b.tmp((len(x), 1), x.dtype) if out is None else out
    b(np.add.reduce, x, 1, None, total, True)
    return total


def _down(b: Binder, t: Array, out: Array) -> None:
    """Emit ``out = t``, summed over rows where ``out`` has one."""
    if len(out) == len(t):
        b(np.copyto, out, t)
    else:
        b(np.add.reduce, t, 0, None, out, True)


@op(
    "cos_sim",
    inputs={"X": "[N, D]", "Y": "[N, D], or [1, D] for all rows"},
    outputs={"Out": "[N, 1]: cosines", "XNorm~": "[N, 1]: lengths of the rows of X", "YNorm~": "lengths of those of Y"},
    infer=_cos_infer,
    grad=default_grad("X", "Y", "XNorm", "YNorm", "Out", "Out@GRAD"),
    dtypes=FLOATS,
)
def cos_sim(b: Binder) -> None:
    """Out = sum(X · Y) / (XNorm · YNorm) for each row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cos_sim", {"X": [[1.0, 0.0], [3.0, 4.0]], "Y": [[1.0, 0.0]]})["Out"]
        array([[1. ],
               [0.6]])

    Source: Fluid's cos_sim_op.
    """
    x, y = _rows(b["X"]), _rows(b["Y"])
    lengths = []
    for slot, value in (("XNorm", x), ("YNorm", y)):
        square = _sum_rows(b, made(b, np.multiply, value, value))
        length = b[slot] if b.wants(slot) else b.like(square)
        b(np.sqrt, square, out=length)
        lengths.append(length)
    product = _sum_rows(b, made(b, np.multiply, x, y))
    b(np.divide, product, made(b, np.multiply, *lengths), out=b["Out"])


@grad_op("cos_sim_grad", dtype_slot="X")
def cos_sim_grad(b: Binder) -> None:
    """dX = dOut · (Y / (XNorm · YNorm) - Out · X / XNorm²), and the like for Y, summed where Y has one row."""
    x, y, g = _rows(b["X"]), _rows(b["Y"]), b["Out@GRAD"]
    both = made(b, np.divide, g, made(b, np.multiply, b["XNorm"], b["YNorm"]))
    pull = made(b, np.multiply, g, b["Out"])
    for slot, own, other, length in (("X", x, y, b["XNorm"]), ("Y", y, x, b["YNorm"])):
        if b.wants(slot + "@GRAD"):
            share = made(b, np.divide, pull, made(b, np.multiply, length, length))
            t = made(b, np.subtract, made(b, np.multiply, both, other), made(b, np.multiply, share, own))
            _down(b, t, _rows(b[slot + "@GRAD"]))


def _distance_infer(c: Context) -> None:
    _pair_rule(c)
    x = c["X"]
    c.set("sub_result", x.shape, x.dtype)
    c.set("Out", (x.shape[0], 1), x.dtype, c.lod("X"))


@op(
    "squared_l2_distance",
    inputs={"X": "[N, D]", "Y": "[N, D], or [1, D] for all rows"},
    outputs={"sub_result~": "X - Y", "Out": "[N, 1]: squares of distances"},
    infer=_distance_infer,
    grad=default_grad("X", "Y", "sub_result", "Out@GRAD"),
    dtypes=FLOATS,
)
def squared_l2_distance(b: Binder) -> None:
    """Out = sum((X - Y)²) for each row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("squared_l2_distance", {"X": [[3.0, 4.0]], "Y": [[0.0, 0.0]]})["Out"]
        array([[25.]])

    Source: Fluid's squared_l2_distance_op.
    """
    x = b["X"]
    gap = b["sub_result"] if b.wants("sub_result") else b.like(x)
    b(np.subtract, x, b["Y"], out=gap)
    _sum_rows(b, _rows(made(b, np.multiply, gap, gap)), b["Out"])


@grad_op("squared_l2_distance_grad", dtype_slot="X")
def squared_l2_distance_grad(b: Binder) -> None:
    """dX = 2 · dOut · (X - Y); dY = -dX, summed where Y has one row."""
    g = made(b, np.multiply, b["Out@GRAD"], b.const(2, b["Out@GRAD"].dtype))
    t = made(b, np.multiply, _rows(b["sub_result"]), g)
    if b.wants("X@GRAD"):
        b(np.copyto, _rows(b["X@GRAD"]), t)
    if b.wants("Y@GRAD"):
        _down(b, made(b, np.negative, t), _rows(b["Y@GRAD"]))
