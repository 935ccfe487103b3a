"""proximal_gd: gradient descent whose penalties are minimised exactly."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr
from fluidnb_kernels.arithmetic import Operand
from fluidnb_kernels.optimizer.common import PARAM, RATE, optimizer_op, step_formula
from fluidnb_kernels.optimizer.launch import update_kernel

#: The weights of penalties.
PENALTIES = {
    "l1": Attr("float", 0.0, "weight of the sum of absolute values"),
    "l2": Attr("float", 0.0, "that of squares"),
}


def shrink(p: Operand, rate: Operand) -> Operand:
    """The proximal point: sign(p) · max(0, |p| - lr · l1) / (1 + lr · l2)."""
    size = np.maximum(abs(p) - rate * p.attr("l1"), 0) / (rate * p.attr("l2") + 1)
    return size * np.sign(p)


@optimizer_op(
    "proximal_gd",
    {"ParamOut": "Param"},
    inputs=PARAM | {"Grad: float": "its gradient, same shape"} | RATE,
    attrs=PENALTIES,
    cost="4 * Param",
)
@step_formula("Param Grad LearningRate", "ParamOut")
def proximal_gd(p: Operand, g: Operand, rate: Operand) -> Operand:
    """p' = sign(q) · max(0, |q| - lr · l1) / (1 + lr · l2), with q = p - lr · g.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("proximal_gd", {"Param": [1.0], "Grad": [1.0], "LearningRate": [0.25]}, {"l1": 1.0})["ParamOut"]
        array([0.5])

    Source: Duchi, Singer (JMLR 2009); Fluid's proximal_gd_op.
    """
    return shrink(p - g * rate, rate)


update_kernel("proximal_gd", numbers=lambda b: (b.attr("l1"), b.attr("l2")))
