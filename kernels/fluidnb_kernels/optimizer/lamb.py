"""lamb: Adam's direction, with a step as long as the parameter says."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, kernel
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.optimizer.adam import INPUTS, OUTPUTS, POWERS, UPDATES
from fluidnb_kernels.optimizer.common import MULTI_PRECISION, gradient, optimizer_op, running_mean, scalar, updates
from fluidnb_kernels.optimizer.launch import advance, beta_powers
from fluidnb_kernels.optimizer.trust_ratio import emit_lamb


def trust(param: Array, direction: Array, out: Array) -> None:
    """Write how much longer the parameter is than the direction; 1 where one of them is zero."""
    a, b = np.sqrt(np.vdot(param, param)), np.sqrt(np.vdot(direction, direction))
    out[...] = a / b if a > 0 and b > 0 else 1


@optimizer_op(
    "lamb",
    UPDATES,
    inputs=INPUTS,
    outputs=OUTPUTS,
    attrs={
        "weight_decay": Attr("float", doc="how much of the parameter is added to the direction"),
        "beta1": Attr("float", 0.9, "exponential decay rate of Moment1"),
        "beta2": Attr("float", 0.999, "exponential decay rate of Moment2"),
        "epsilon": Attr("float", 1e-6, "keeps the divisor from zero"),
        "always_adapt": Attr("bool", False, "ignored (compatibility); always on"),
        "multi_precision": MULTI_PRECISION,
    },
    cost="12 * Param",
    infer=updates(UPDATES | POWERS),
    alias=POWERS,
)
def lamb(b: Binder) -> None:
    """r = (m' / (1 - Beta1Pow)) / (√(v' / (1 - Beta2Pow)) + eps) + decay · p; p' = p - lr · |p| / |r| · r.

    The running means m' and v' are those of adam.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1], "Moment1": [0.0], "Moment2": [0.0]}
        >>> x = {**x, "Beta1Pow": [0.9], "Beta2Pow": [0.999]}
        >>> run_op("lamb", x, {"weight_decay": 0.0})["ParamOut"].round(4)
        array([0.9])

    Source: You et al., Large batch optimization for deep learning (ICLR 2020); Fluid's lamb_op.
    """
    powers = {"Beta1Pow": b.attr("beta1"), "Beta2Pow": b.attr("beta2")}
    slots = "Param", "Moment1", "Moment2"
    g, p, m, v, *left = values(b, gradient(b), *(b[slot] for slot in slots), *(scalar(b, slot) for slot in powers))
    left1, left2 = (1 - power for power in left)
    m = running_mean(m, g, b.attr("beta1"))
    m.into(b["Moment1Out"])
    v = running_mean(v, g * g, b.attr("beta2"))
    v.into(b["Moment2Out"])
    scale = np.sqrt(v / left2) + b.attr("epsilon")
    direction = m / left1 / scale + p * b.attr("weight_decay")
    ratio = b.tmp((), b["Param"].dtype)
    b(trust, b["Param"], direction.array, ratio)
    (p - direction * apply(b, np.multiply, ratio, scalar(b, "LearningRate"))).into(b["ParamOut"])
    for slot, beta in powers.items():
        if b.wants(slot + "Out"):
            b(np.copyto, b[slot + "Out"], apply(b, np.multiply, b[slot], b.const(beta, b[slot].dtype)))


@kernel("lamb", place="cuda", dtypes=FLOATS)
def lamb_on_cuda(b: Binder) -> None:
    """Two launches, and one of a single thread that advances the powers."""
    powers, betas = beta_powers(b), (b.attr("beta1"), b.attr("beta2"))
    emit_lamb(b, powers, betas, b.attr("epsilon"), b.attr("weight_decay"))
    advance(b, powers, betas)
