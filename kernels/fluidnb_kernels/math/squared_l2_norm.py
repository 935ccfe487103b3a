"""squared_l2_norm: the sum of squares."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Binder, default_grad, grad_op, op
from fluidnb_kernels.emit import reading
from fluidnb_kernels.reduce.reduction_kernels import SQUARES, launch


@op(
    "squared_l2_norm",
    inputs={"X": "any shape"},
    outputs={"Out": "the sum of their squares, shape [1]"},
    cost="X",
    infer=lambda c: c.set("Out", (1,), c["X"].dtype),
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


launch("squared_l2_norm", SQUARES, "s::square")
