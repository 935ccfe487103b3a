"""squared_l2_norm: the sum of squares."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda.axis_reduction import fold, spread
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.reduce.reduction_kernels import CUDA, SQUARES
from fluidnb_kernels.views import reading


def _infer(c: Context) -> None:
    c.set("Out", (1,), c["X"].dtype)


@op(
    "squared_l2_norm",
    inputs={"X": "any shape"},
    outputs={"Out": "the sum of their squares, shape [1]"},
    cost="X",
    infer=_infer,
    grad=default_grad("X", "Out@GRAD"),
)
def squared_l2_norm(b: Binder) -> None:
    """Out = sum(X²) over all elements.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("squared_l2_norm", {"X": [3.0, 4.0]})["Out"]
        array([25.])

    Source: Fluid's squared_l2_norm_op.
    """
    x = b["X"]
    row = reading(b, x, (x.size,))
    b(np.dot, row, row, b["Out"].reshape(()))


@grad_op("squared_l2_norm_grad")
def squared_l2_norm_grad(b: Binder) -> None:
    """dX = 2 · dOut · X."""
    x = b["X"]
    twice = b.tmp((), x.dtype)
    b(np.multiply, b["Out@GRAD"].reshape(()), b.const(2, x.dtype), out=twice)
    b(np.multiply, x, twice, out=b["X@GRAD"])


@kernel("squared_l2_norm", place="cuda", dtypes=FLOATS)
def squared_l2_norm_on_cuda(b: Binder) -> None:
    """A fold of all elements."""
    x = b["X"]
    fold(b, CUDA, SQUARES, x, range(x.ndim), b["Out"])


@kernel("squared_l2_norm_grad", place="cuda", dtypes=FLOATS)
def squared_l2_norm_grad_on_cuda(b: Binder) -> None:
    """dX = 2 · dOut · X."""
    x = b["X"]
    spread(b, CUDA, "s::square", range(x.ndim), x, None, b["Out@GRAD"], b["X@GRAD"])
