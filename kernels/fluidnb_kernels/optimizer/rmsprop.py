"""rmsprop: steps scaled by a running mean of squares, with momentum."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, Context, kernel
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.emit import FLOATS, zeros
from fluidnb_kernels.optimizer.common import GRAD, PARAM, RATE, gradient, optimizer_op, running_mean, scalar, updates
from fluidnb_kernels.optimizer.launch import emit_update

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


@optimizer_op(
    "rmsprop",
    _UPDATES,
    inputs=PARAM | GRAD | {
        "MeanSquare: float": "running mean of its square",
        "Moment: float": "the step, with momentum",
    } | RATE | {"MeanGrad?: float": "running mean of the gradient, when centered"},
    outputs={"MeanGradOut?": "MeanGrad after the step"},
    attrs={
        "epsilon": Attr("float", 1e-10, "keeps the divisor from zero"),
        "decay": Attr("float", 0.9, "how much of the means stays"),
        "momentum": Attr("float", 0.0, "how much of the step stays"),
        "centered": Attr("bool", False, "divide by the deviation from the mean gradient, not by its size"),
    },
    master=True,
    cost="7 * Param",
    infer=_infer,
    alias={"MeanGradOut": "MeanGrad"},
)  # fmt: skip
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
    g, rate, square, mean, moment, p = values(
        b, gradient(b), scalar(b, "LearningRate"), *(b[s] for s in ("MeanSquare", "MeanGrad", "Moment", "Param"))
    )
    square = running_mean(square, g * g, b.attr("decay"))
    square.into(b["MeanSquareOut"])
    level = square + b.attr("epsilon")
    if b.attr("centered"):
        mean = running_mean(mean, g, b.attr("decay"))
        if b.wants("MeanGradOut"):
            mean.into(b["MeanGradOut"])
        level = level - mean * mean
    elif b.wants("MeanGradOut"):
        if not b.has("MeanGrad"):
            zeros(b, b["MeanGradOut"])
        elif b["MeanGradOut"] is not b["MeanGrad"]:
            b(np.copyto, b["MeanGradOut"], b["MeanGrad"])
    step = g * rate / np.sqrt(level)
    moment = moment * b.attr("momentum") + step
    moment.into(b["MomentOut"])
    (p - moment).into(b["ParamOut"])


@kernel("rmsprop", place="cuda", dtypes=FLOATS)
def rmsprop_on_cuda(b: Binder) -> None:
    states = [(b[slot], b[slot + "Out"]) for slot in ("MeanSquare", "Moment")]
    numbers = b.attr("decay"), b.attr("epsilon"), b.attr("momentum"), b.has("MeanGrad")
    if not b.wants("MeanGradOut") and not b.attr("centered"):
        return emit_update(b, "rmsprop", states, numbers)
    mean = b["MeanGrad"] if b.has("MeanGrad") else b["Param"]
    states.append((mean, b["MeanGradOut"] if b.wants("MeanGradOut") else b.like(mean)))
    return emit_update(b, "rmsprop_centered" if b.attr("centered") else "rmsprop_kept", states, numbers)
