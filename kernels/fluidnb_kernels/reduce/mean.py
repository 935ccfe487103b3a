"""mean: the mean of all elements."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Binder, default_grad, grad_op, linear_grad, op
from fluidnb_kernels.reduce.reduction_kernels import MEAN, launch


@op(
    "mean",
    inputs={"X": "any shape"},
    outputs={"Out": "their mean, shape [1]"},
    cost="X",
    infer=lambda c: c.set("Out", (1,), c["X"].dtype),
    grad=default_grad("X", "Out@GRAD"),
)
def mean(b: Binder) -> None:
    """Out = sum(X) / n over all n elements.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("mean", {"X": [[1.0, 2.0], [3.0, 6.0]]})["Out"]
        array([3.])

    Source: Fluid's mean_op.
    """
    x, out = b["X"], b["Out"].reshape(())
    total = b.tmp((), x.dtype)
    b(np.add.reduce, x, None, None, total)
    b(np.divide, total, b.const(x.size, x.dtype), out=out)


@grad_op("mean_grad", grad=linear_grad("mean"))
def mean_grad(b: Binder) -> None:
    """dX = dOut / n, the same for every element."""
    dx = b["X@GRAD"]
    share = b.tmp((), dx.dtype)
    b(np.divide, b["Out@GRAD"].reshape(()), b.const(dx.size, dx.dtype), out=share)
    b(np.copyto, dx, share)


launch("mean", MEAN, "s::share", number=lambda b: b["X"].size, numbers=lambda b: (b["X"].size, 0.0))
