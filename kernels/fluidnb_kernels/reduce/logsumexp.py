"""logsumexp and frobenius_norm: reductions that are smooth in every element."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda.axis_reduction import fold, spread
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.reduce.reduce import axes
from fluidnb_kernels.reduce.reduction_kernels import CUDA, LENGTH, LOGSUMEXP
from fluidnb_kernels.rules import one_axis

Array = Any


def _gone(c: Context) -> tuple[int, ...]:
    """The dimensions that logsumexp reduces."""
    rank, dims = c["X"].ndim, c.attr("axis", [0])
    if c.attr("reduce_all", False) or not dims:
        return tuple(range(rank))
    return tuple(sorted({one_axis(c, d, rank) for d in dims}))


def _set(c: Context, gone: tuple[int, ...], keep: bool) -> None:
    x = c["X"]
    shape = tuple(1 if i in gone else n for i, n in enumerate(x.shape) if keep or i not in gone)
    c.set("Out", shape or (1,), x.dtype, () if 0 in gone or not x.ndim else c.lod("X"))


def _spread(b: Binder, slot: str, gone: tuple[int, ...]) -> Array:
    """Out or its gradient, seen with the dimensions of X."""
    return b[slot].reshape([1 if i in gone else n for i, n in enumerate(b["X"].shape)])


def _logsumexp_infer(c: Context) -> None:
    _set(c, _gone(c), c.attr("keepdim"))


@op(
    "logsumexp",
    inputs={"X": "any shape"},
    outputs={"Out": "the logarithms; [1] where everything is reduced"},
    attrs={
        "axis": Attr("ints", [0], "the dimensions to reduce; negative ones count from the end, none means all"),
        "keepdim": Attr("bool", False, "keep them, with size 1"),
        "reduce_all": Attr("bool", False, "reduce all of them"),
    },
    cost="4 * X",
    infer=_logsumexp_infer,
    grad=default_grad("X", "Out", "Out@GRAD"),
    dtypes=FLOATS,
)
def logsumexp(b: Binder) -> None:
    """Out = log(sum(exp(X))) over the dimensions ``axis``, exact for large and small X too.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("logsumexp", {"X": [1000.0, 1000.0]})["Out"].round(4)
        array([1000.6931])

    Source: Paddle's logsumexp_op.
    """
    x, gone = b["X"], _gone(b)
    out = _spread(b, "Out", gone)
    top = b.tmp(out.shape, x.dtype)
    b(np.maximum.reduce, x, gone, None, top, True)
    limits = np.finfo(x.dtype)
    b(np.clip, top, b.const(limits.min, x.dtype), b.const(limits.max, x.dtype), out=top)  # inf - inf is not a number
    b(np.add.reduce, apply(b, np.exp, apply(b, np.subtract, x, top)), gone, None, out, True)
    b(np.add, apply(b, np.log, out), top, out=out)


@grad_op("logsumexp_grad")
def logsumexp_grad(b: Binder) -> None:
    """dX = dOut · exp(X - Out)."""
    gone = _gone(b)
    part = apply(b, np.exp, apply(b, np.subtract, b["X"], _spread(b, "Out", gone)))
    b(np.multiply, part, _spread(b, "Out@GRAD", gone), out=b["X@GRAD"])


def _frobenius_infer(c: Context) -> None:
    _set(c, axes(c), c.attr("keep_dim"))


@op(
    "frobenius_norm",
    inputs={"X": "any shape"},
    outputs={"Out": "the lengths; [1] where everything is reduced"},
    attrs={
        "dim": Attr("ints", [0], "the dimensions to reduce; negative ones count from the end, none means all"),
        "keep_dim": Attr("bool", False, "keep them, with size 1"),
        "reduce_all": Attr("bool", False, "reduce all of them"),
        "in_dtype": Attr("int", -1, "ignored (compatibility with Paddle 2)"),
        "out_dtype": Attr("int", -1, "ignored (compatibility with Paddle 2)"),
    },
    cost="X",
    infer=_frobenius_infer,
    grad=default_grad("X", "Out", "Out@GRAD"),
    dtypes=FLOATS,
)
def frobenius_norm(b: Binder) -> None:
    """Out = √(sum(X²)) over the dimensions ``dim``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("frobenius_norm", {"X": [[3.0, 4.0]]}, {"dim": [0, 1]})["Out"]
        array([5.])

    Source: Paddle's frobenius_norm_op.
    """
    x, gone = b["X"], axes(b)
    out = _spread(b, "Out", gone)
    b(np.add.reduce, apply(b, np.multiply, x, x), gone, None, out, True)
    b(np.sqrt, out, out=out)


@grad_op("frobenius_norm_grad")
def frobenius_norm_grad(b: Binder) -> None:
    """dX = dOut · X / Out."""
    gone = axes(b)
    length = apply(b, np.add, _spread(b, "Out", gone), b.const(1e-12, b["X"].dtype))
    b(np.multiply, b["X"], apply(b, np.divide, _spread(b, "Out@GRAD", gone), length), out=b["X@GRAD"])


@kernel("logsumexp", place="cuda", dtypes=FLOATS)
def logsumexp_on_cuda(b: Binder) -> None:
    """In one pass: sums of exponentials are rescaled where a larger element comes."""
    fold(b, CUDA, LOGSUMEXP, b["X"], _gone(b), b["Out"])


@kernel("logsumexp_grad", place="cuda", dtypes=FLOATS)
def logsumexp_grad_on_cuda(b: Binder) -> None:
    """dX = dOut · exp(X - Out)."""
    spread(b, CUDA, "s::logsumexp", _gone(b), b["X"], b["Out"], b["Out@GRAD"], b["X@GRAD"])


@kernel("frobenius_norm", place="cuda", dtypes=FLOATS)
def frobenius_norm_on_cuda(b: Binder) -> None:
    """The root of a sum of squares, in one pass."""
    fold(b, CUDA, LENGTH, b["X"], axes(b), b["Out"])


@kernel("frobenius_norm_grad", place="cuda", dtypes=FLOATS)
def frobenius_norm_grad_on_cuda(b: Binder) -> None:
    """dX = dOut · X / Out."""
    spread(b, CUDA, "s::length", axes(b), b["X"], b["Out"], b["Out@GRAD"], b["X@GRAD"], (1e-12, 0.0))
