"""lamb: Adam's direction, with a step as long as the parameter says."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, kernel, op
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.optimizer.common import gradient, scalar, updates
from fluidnb_kernels.optimizer.launch import advance, beta_powers
from fluidnb_kernels.optimizer.trust_ratio import emit_lamb

Array = Any

_UPDATES = {
    "ParamOut": "Param",
    "Moment1Out": "Moment1",
    "Moment2Out": "Moment2",
    "Beta1PowOut": "Beta1Pow",
    "Beta2PowOut": "Beta2Pow",
}


def trust(param: Array, direction: Array, out: Array) -> None:
    """Write how much longer the parameter is than the direction; 1 where one of them is zero.

    Args:
        direction: where to go.

    Example:
        >>> r = np.zeros(()); trust(np.array([6.0, 8.0]), np.array([3.0, 4.0]), r); r
        array(2.)
    """
    a, b = np.sqrt(np.vdot(param, param)), np.sqrt(np.vdot(direction, direction))
    out[...] = a / b if a > 0 and b > 0 else 1


@op(
    "lamb",
    inputs={
        "Param: float": "the parameter, any shape",
        "Grad: float | rows": "its gradient, same shape; or SelectedRows",
        "LearningRate: float[1]": "one number",
        "Moment1: float": "running mean of the gradient",
        "Moment2: float": "running mean of its square",
        "Beta1Pow: float[1]": "beta1 to the power of the step",
        "Beta2Pow: float[1]": "beta2 to the power of the step",
        "MasterParam?: float32": "copy of a float16 parameter",
        "SkipUpdate?: bool[1]": "whether everything stays as it is",
    },
    outputs={
        "ParamOut": "the parameter after the step",
        "Moment1Out": "Moment1 after the step",
        "Moment2Out": "Moment2 after the step",
        "Beta1PowOut?": "Beta1Pow for the next step; without it a scale operator advances Beta1Pow",
        "Beta2PowOut?": "Beta2Pow for the next step",
        "MasterParamOut?": "its float32 copy after the step",
    },
    attrs={
        "weight_decay": Attr("float", doc="how much of the parameter is added to the direction"),
        "beta1": Attr("float", 0.9, "exponential decay rate of Moment1"),
        "beta2": Attr("float", 0.999, "exponential decay rate of Moment2"),
        "epsilon": Attr("float", 1e-6, "keeps the divisor from zero"),
        "always_adapt": Attr("bool", False, "ignored (compatibility); always on"),
        "multi_precision": Attr("bool", False, "whether MasterParam is used"),
    },
    cost="12 * Param",
    infer=updates(_UPDATES),
    alias=_UPDATES,
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
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
    param, grad, one = b["Param"], gradient(b), b.const(1, b["Param"].dtype)
    powers = {"Beta1Pow": b.attr("beta1"), "Beta2Pow": b.attr("beta2")}
    left = [apply(b, np.subtract, one, scalar(b, slot)) for slot in powers]
    _mean(b, "Moment1", grad, b.attr("beta1"))
    _mean(b, "Moment2", apply(b, np.multiply, grad, grad), b.attr("beta2"))
    scale = apply(b, np.sqrt, apply(b, np.divide, b["Moment2Out"], left[1]))
    b(np.add, scale, b.const(b.attr("epsilon"), param.dtype), out=scale)
    direction = apply(b, np.divide, apply(b, np.divide, b["Moment1Out"], left[0]), scale)
    b(np.add, direction, apply(b, np.multiply, param, b.const(b.attr("weight_decay"), param.dtype)), out=direction)
    ratio = b.tmp((), param.dtype)
    b(trust, param, direction, ratio)
    b(np.multiply, direction, apply(b, np.multiply, ratio, scalar(b, "LearningRate")), out=direction)
    b(np.subtract, param, direction, out=b["ParamOut"])
    for slot, beta in powers.items():
        if b.wants(slot + "Out"):
            b(np.copyto, b[slot + "Out"], apply(b, np.multiply, b[slot], b.const(beta, b[slot].dtype)))


def _mean(b: Binder, slot: str, value: Array, beta: float) -> None:
    """Emit a running mean."""
    t = apply(b, np.multiply, value, b.const(1 - beta, value.dtype))
    b(np.add, apply(b, np.multiply, b[slot], b.const(beta, t.dtype)), t, out=b[slot + "Out"])


@kernel("lamb", place="cuda", dtypes=FLOATS)
def lamb_on_cuda(b: Binder) -> None:
    """Two launches, and one of a single thread that advances the powers."""
    powers, betas = beta_powers(b), (b.attr("beta1"), b.attr("beta2"))
    emit_lamb(b, powers, betas, b.attr("epsilon"), b.attr("weight_decay"))
    advance(b, powers, betas)
