"""logsumexp and frobenius_norm: reductions that are smooth in every element."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.reduce.reduce import axes, set_reduced, with_axes
from fluidnb_kernels.reduce.reduction_kernels import LENGTH, LOGSUMEXP, launch
from fluidnb_kernels.rules import one_axis

#: What keeps the gradient of frobenius_norm from dividing by a length of 0.
_TINY = 1e-12


def _gone(c: Context) -> tuple[int, ...]:
    """The dimensions that logsumexp reduces."""
    rank, dims = c["X"].ndim, c.attr("axis", [0])
    if c.attr("reduce_all", False) or not dims:
        return tuple(range(rank))
    return tuple(sorted({one_axis(c, d, rank) for d in dims}))


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
    infer=lambda c: set_reduced(c, _gone(c), c.attr("keepdim")),
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
    gone, limits = _gone(b), np.finfo(b["X"].dtype)
    x, out = values(b, b["X"], with_axes(b, "Out", gone))
    top = np.minimum(np.maximum(x.reduced(np.maximum, gone), limits.min), limits.max)  # inf - inf is not a number
    np.exp(x - top).sum(gone).into(out.array)
    (np.log(out) + top).into(out.array)


@grad_op("logsumexp_grad")
def logsumexp_grad(b: Binder) -> None:
    """dX = dOut · exp(X - Out)."""
    gone = _gone(b)
    x, out, g = values(b, b["X"], with_axes(b, "Out", gone), with_axes(b, "Out@GRAD", gone))
    (np.exp(x - out) * g).into(b["X@GRAD"])


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
    infer=lambda c: set_reduced(c, axes(c), c.attr("keep_dim")),
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
    gone = axes(b)
    x, out = values(b, b["X"], with_axes(b, "Out", gone))
    np.sqrt((x * x).sum(gone)).into(out.array)


@grad_op("frobenius_norm_grad")
def frobenius_norm_grad(b: Binder) -> None:
    """dX = dOut · X / Out."""
    gone = axes(b)
    x, length, g = values(b, b["X"], with_axes(b, "Out", gone), with_axes(b, "Out@GRAD", gone))
    (x * (g / (length + _TINY))).into(b["X@GRAD"])


# in one pass: sums of exponentials are rescaled where a larger element comes
launch("logsumexp", LOGSUMEXP, "s::logsumexp", _gone)
launch("frobenius_norm", LENGTH, "s::length", axes, numbers=lambda b: (_TINY, 0.0))
