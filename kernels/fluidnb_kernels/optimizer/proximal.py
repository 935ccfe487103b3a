"""proximal_gd: gradient descent whose penalties are minimised exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, kernel, op
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.optimizer.common import gradient, scalar, updates
from fluidnb_kernels.optimizer.launch import emit_update

Array = Any


def shrink(b: Binder, point: Array, rate: Array) -> None:
    """Emit ParamOut = sign(point) · max(0, |point| - lr · l1) / (1 + lr · l2).

    Args:
        point: where plain descent would go.
    """
    dtype = point.dtype
    size = apply(b, np.absolute, point)
    b(np.subtract, size, apply(b, np.multiply, rate, b.const(b.attr("l1"), dtype)), out=size)
    b(np.maximum, size, b.const(0, dtype), out=size)
    divisor = apply(b, np.add, apply(b, np.multiply, rate, b.const(b.attr("l2"), dtype)), b.const(1, dtype))
    b(np.divide, size, divisor, out=size)
    b(np.multiply, size, apply(b, np.sign, point), out=b["ParamOut"])


@op(
    "proximal_gd",
    inputs={
        "Param: float": "the parameter, any shape",
        "Grad: float": "its gradient, same shape",
        "LearningRate: float[1]": "one number",
    },
    outputs={"ParamOut": "the parameter after the step"},
    attrs={
        "l1": Attr("float", 0.0, "weight of the sum of absolute values"),
        "l2": Attr("float", 0.0, "that of squares"),
    },
    cost="4 * Param",
    infer=updates({"ParamOut": "Param"}),
    alias={"ParamOut": "Param"},
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def proximal_gd(b: Binder) -> None:
    """p' = sign(q) · max(0, |q| - lr · l1) / (1 + lr · l2), with q = p - lr · g.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("proximal_gd", {"Param": [1.0], "Grad": [1.0], "LearningRate": [0.25]}, {"l1": 1.0})["ParamOut"]
        array([0.5])

    Source: Duchi, Singer (JMLR 2009); Fluid's proximal_gd_op.
    """
    rate = scalar(b, "LearningRate")
    shrink(b, apply(b, np.subtract, b["Param"], apply(b, np.multiply, gradient(b), rate)), rate)


@kernel("proximal_gd", place="cuda", dtypes=FLOATS)
def proximal_gd_on_cuda(b: Binder) -> None:
    """One launch."""
    emit_update(b, "proximal_gd", numbers=(b.attr("l1"), b.attr("l2")))
