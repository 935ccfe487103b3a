"""adadelta: steps as large as those of the past, whatever the gradient's unit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Attr
from fluidnb_kernels.arithmetic import Operand
from fluidnb_kernels.optimizer.common import GRAD, PARAM, optimizer_op, running_mean, step_formula
from fluidnb_kernels.optimizer.launch import update_kernel


@optimizer_op(
    "adadelta",
    {"ParamOut": "Param", "AvgSquaredGradOut": "AvgSquaredGrad", "AvgSquaredUpdateOut": "AvgSquaredUpdate"},
    inputs=PARAM | GRAD | {
        "AvgSquaredGrad: float": "running mean of the gradient's square",
        "AvgSquaredUpdate: float": "running mean of the step's square",
        "LearningRate?: float[1]": "without it steps are taken whole",
    },
    attrs={
        "rho": Attr("float", 0.95, "how much of the means stays"),
        "epsilon": Attr("float", 1e-6, "keeps the divisor from zero"),
    },
    master=True,
    cost="8 * Param",
)  # fmt: skip
@step_formula(
    "Param Grad AvgSquaredGrad AvgSquaredUpdate LearningRate", "AvgSquaredGradOut AvgSquaredUpdateOut ParamOut"
)
def adadelta(p: Operand, g: Operand, mean: Operand, last: Operand, rate: Operand) -> Iterator[Operand]:
    """a' = rho a + (1 - rho) g²; s = √((u + eps) / (a' + eps)) g; u' = rho u + (1 - rho) s²; p' = p - lr s.

    Here a is AvgSquaredGrad and u is AvgSquaredUpdate.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [2.0], "AvgSquaredGrad": [0.0], "AvgSquaredUpdate": [3.0]}
        >>> run_op("adadelta", {**x, "LearningRate": [0.5]}, {"rho": 0.25})["ParamOut"].round(4)
        array([0.])

    Source: Zeiler, ADADELTA (2012); Fluid's adadelta_op.
    """
    rho, epsilon = p.attr("rho"), p.attr("epsilon")
    mean = running_mean(mean, g * g, rho)
    yield mean
    step = np.sqrt((last + epsilon) / (mean + epsilon)) * g
    yield running_mean(last, step * step, rho)
    yield p - (step * rate if p.binder.has("LearningRate") else step)


update_kernel(
    "adadelta", "AvgSquaredGrad", "AvgSquaredUpdate",
    numbers=lambda b: (b.attr("rho"), b.attr("epsilon"), b.has("LearningRate")),
)  # fmt: skip
