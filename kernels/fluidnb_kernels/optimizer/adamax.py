"""adamax: Adam with the largest gradient in place of the mean square."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, kernel, op
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.optimizer.common import gradient, scalar, updates
from fluidnb_kernels.optimizer.launch import emit_update, one_number

_UPDATES = {"ParamOut": "Param", "MomentOut": "Moment", "InfNormOut": "InfNorm"}


@op(
    "adamax",
    inputs={
        "Param: float": "the parameter, any shape",
        "Grad: float | rows": "its gradient, same shape; or SelectedRows",
        "LearningRate: float[1]": "one number",
        "Moment: float": "running mean of the gradient",
        "InfNorm: float": "the largest gradient, fading",
        "Beta1Pow: float[1]": "beta1 to the power of the step; a scale operator advances it",
        "MasterParam?: float32": "copy of a float16 parameter",
    },
    outputs={
        "ParamOut": "the parameter after the step",
        "MomentOut": "Moment after the step",
        "InfNormOut": "InfNorm after the step",
        "MasterParamOut?": "its float32 copy after the step",
    },
    attrs={
        "beta1": Attr("float", 0.9, "exponential decay rate of Moment"),
        "beta2": Attr("float", 0.999, "how much of InfNorm stays"),
        "epsilon": Attr("float", 1e-8, "keeps the divisor from zero"),
        "multi_precision": Attr("bool", False, "whether MasterParam is used"),
    },
    cost="6 * Param",
    infer=updates(_UPDATES),
    alias=_UPDATES,
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def adamax(b: Binder) -> None:
    """m' = b1 m + (1 - b1) g; n' = max(b2 n + eps, |g|); p' = p - lr / (1 - Beta1Pow) · m' / n'.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1], "Moment": [0.0], "InfNorm": [0.0]}
        >>> run_op("adamax", {**x, "Beta1Pow": [0.9]})["ParamOut"].round(4)
        array([0.9])

    Source: Kingma and Ba, "Adam" (ICLR 2015), section 7.1; Fluid's adamax_op.
    """
    grad, dtype = gradient(b), b["Param"].dtype
    beta1, beta2 = b.attr("beta1"), b.attr("beta2")
    left = apply(b, np.subtract, b.const(1, dtype), scalar(b, "Beta1Pow"))
    step = apply(b, np.divide, scalar(b, "LearningRate"), left)
    t = apply(b, np.multiply, grad, b.const(1 - beta1, dtype))
    b(np.add, apply(b, np.multiply, b["Moment"], b.const(beta1, dtype)), t, out=b["MomentOut"])
    u = apply(b, np.multiply, b["InfNorm"], b.const(beta2, dtype))
    b(np.add, u, b.const(b.attr("epsilon"), dtype), out=u)
    b(np.maximum, u, apply(b, np.absolute, grad), out=b["InfNormOut"])
    b(np.divide, b["MomentOut"], b["InfNormOut"], out=t)
    b(np.multiply, t, step, out=t)
    b(np.subtract, b["Param"], t, out=b["ParamOut"])


@kernel("adamax", place="cuda", dtypes=FLOATS)
def adamax_on_cuda(b: Binder) -> None:
    """One launch."""
    states = [(b[slot], b[slot + "Out"]) for slot in ("Moment", "InfNorm")]
    power = one_number(b, "Beta1Pow")
    emit_update(b, "adamax", states, (b.attr("beta1"), b.attr("beta2"), b.attr("epsilon")), (power, power))
