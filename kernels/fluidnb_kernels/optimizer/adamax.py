"""adamax: Adam with the largest gradient in place of the mean square."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Attr, Binder, kernel
from fluidnb_kernels.arithmetic import Operand
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.optimizer.common import GRAD, PARAM, RATE, optimizer_op, running_mean, step_formula
from fluidnb_kernels.optimizer.launch import emit_update, one_number


@optimizer_op(
    "adamax",
    {"ParamOut": "Param", "MomentOut": "Moment", "InfNormOut": "InfNorm"},
    inputs=PARAM | GRAD | RATE | {
        "Moment: float": "running mean of the gradient",
        "InfNorm: float": "the largest gradient, fading",
        "Beta1Pow: float[1]": "beta1 to the power of the step; a scale operator advances it",
    },
    attrs={
        "beta1": Attr("float", 0.9, "exponential decay rate of Moment"),
        "beta2": Attr("float", 0.999, "how much of InfNorm stays"),
        "epsilon": Attr("float", 1e-8, "keeps the divisor from zero"),
    },
    master=True,
    cost="6 * Param",
)  # fmt: skip
@step_formula("Param Grad LearningRate Beta1Pow Moment InfNorm", "MomentOut InfNormOut ParamOut")
def adamax(p: Operand, g: Operand, rate: Operand, power: Operand, m: Operand, norm: Operand) -> Iterator[Operand]:
    """m' = b1 m + (1 - b1) g; n' = max(b2 n + eps, |g|); p' = p - lr / (1 - Beta1Pow) · m' / n'.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1], "Moment": [0.0], "InfNorm": [0.0]}
        >>> run_op("adamax", {**x, "Beta1Pow": [0.9]})["ParamOut"].round(4)
        array([0.9])

    Source: Kingma and Ba, "Adam" (ICLR 2015), section 7.1; Fluid's adamax_op.
    """
    m = running_mean(m, g, p.attr("beta1"))
    yield m
    step = rate / (1 - power)
    norm = np.maximum(norm * p.attr("beta2") + p.attr("epsilon"), abs(g))
    yield norm
    yield p - m / norm * step


@kernel("adamax", place="cuda", dtypes=FLOATS)
def adamax_on_cuda(b: Binder) -> None:
    states = [(b[slot], b[slot + "Out"]) for slot in ("Moment", "InfNorm")]
    power = one_number(b, "Beta1Pow")
    emit_update(b, "adamax", states, (b.attr("beta1"), b.attr("beta2"), b.attr("epsilon")), (power, power))
