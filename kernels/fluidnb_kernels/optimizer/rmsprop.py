"""rmsprop: steps scaled by a running mean of squares, with momentum."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, kernel, op
from fluidnb_kernels.emit import FLOATS, apply, zeros
from fluidnb_kernels.optimizer.common import gradient, scalar, updates
from fluidnb_kernels.optimizer.launch import emit_update

Array = Any

_UPDATES = {"ParamOut": "Param", "MomentOut": "Moment", "MeanSquareOut": "MeanSquare"}


def _infer(c: Context) -> None:
    updates(_UPDATES)(c)
    c.require(
        c.has("MeanGrad") or not c.attr("centered"), "rmsprop needs Input(MeanGrad) when it is centered.",
        expected="MeanGrad", received="none",
    )  # fmt: skip
    if c.wants("MeanGradOut"):
        like = c["MeanGrad"] if c.has("MeanGrad") else c["Param"]
        c.set("MeanGradOut", like.shape, like.dtype)


@op(
    "rmsprop",
    inputs={
        "Param: float": "the parameter, any shape",
        "Grad: float | rows": "its gradient, same shape; or SelectedRows",
        "MeanSquare: float": "running mean of its square",
        "Moment: float": "the step, with momentum",
        "LearningRate: float[1]": "one number",
        "MeanGrad?: float": "running mean of the gradient, when centered",
        "MasterParam?: float32": "copy of a float16 parameter",
    },
    outputs={
        "ParamOut": "the parameter after the step",
        "MomentOut": "Moment after the step",
        "MeanSquareOut": "MeanSquare after the step",
        "MeanGradOut?": "MeanGrad after the step",
        "MasterParamOut?": "its float32 copy after the step",
    },
    attrs={
        "epsilon": Attr("float", 1e-10, "keeps the divisor from zero"),
        "decay": Attr("float", 0.9, "how much of the means stays"),
        "momentum": Attr("float", 0.0, "how much of the step stays"),
        "centered": Attr("bool", False, "divide by the deviation from the mean gradient, not by its size"),
        "multi_precision": Attr("bool", False, "whether MasterParam is used"),
    },
    cost="7 * Param",
    infer=_infer,
    alias={**_UPDATES, "MeanGradOut": "MeanGrad"},
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def rmsprop(b: Binder) -> None:
    """s' = decay s + (1 - decay) g²; v' = momentum v + lr g / √(s' - a'² + eps); p' = p - v'.

    Here a' = decay a + (1 - decay) g when centered, else 0.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [2.0], "MeanSquare": [4.0], "Moment": [0.0], "LearningRate": [0.5]}
        >>> run_op("rmsprop", x)["ParamOut"].round(4)
        array([0.5])

    Source: Tieleman, Hinton (lecture 6.5, 2012); Graves (2013) for the centered form; Fluid's rmsprop_op.
    """
    grad, decay, dtype = gradient(b), b.attr("decay"), b["Param"].dtype
    _mean(b, "MeanSquare", apply(b, np.multiply, grad, grad), decay)
    level = apply(b, np.add, b["MeanSquareOut"], b.const(b.attr("epsilon"), dtype))
    if b.attr("centered"):
        _mean(b, "MeanGrad", grad, decay)
        b(np.subtract, level, apply(b, np.multiply, b["MeanGradOut"], b["MeanGradOut"]), out=level)
    elif b.wants("MeanGradOut"):
        if not b.has("MeanGrad"):
            zeros(b, b["MeanGradOut"])
        elif b["MeanGradOut"] is not b["MeanGrad"]:
            b(np.copyto, b["MeanGradOut"], b["MeanGrad"])
    b(np.sqrt, level, out=level)
    step = apply(b, np.multiply, grad, scalar(b, "LearningRate"))
    b(np.divide, step, level, out=step)
    t = apply(b, np.multiply, b["Moment"], b.const(b.attr("momentum"), dtype))
    b(np.add, t, step, out=b["MomentOut"])
    b(np.subtract, b["Param"], b["MomentOut"], out=b["ParamOut"])


def _mean(b: Binder, slot: str, value: Array, decay: float) -> None:
    """Emit a running mean."""
    t = apply(b, np.multiply, value, b.const(1 - decay, value.dtype))
    b(np.add, apply(b, np.multiply, b[slot], b.const(decay, t.dtype)), t, out=b[slot + "Out"])


@kernel("rmsprop", place="cuda", dtypes=FLOATS)
def rmsprop_on_cuda(b: Binder) -> None:
    """One launch."""
    states = [(b[slot], b[slot + "Out"]) for slot in ("MeanSquare", "Moment")]
    numbers = b.attr("decay"), b.attr("epsilon"), b.attr("momentum"), b.has("MeanGrad")
    if not b.wants("MeanGradOut") and not b.attr("centered"):
        return emit_update(b, "rmsprop", states, numbers)
    mean = b["MeanGrad"] if b.has("MeanGrad") else b["Param"]
    states.append((mean, b["MeanGradOut"] if b.wants("MeanGradOut") else b.like(mean)))
    return emit_update(b, "rmsprop_centered" if b.attr("centered") else "rmsprop_kept", states, numbers)
