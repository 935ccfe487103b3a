"""adagrad, decayed_adagrad, proximal_adagrad, adadelta and rmsprop: steps over the size of past gradients."""

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Attr, Binder, Context
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import Operand, values
from fluidnb_kernels.emit import FLOATS, zeros
from fluidnb_kernels.optimizer.common import (
    GRAD,
    PARAM,
    RATE,
    optimizer_op,
    running_mean,
    scalar,
    step_formula,
    updates,
)
from fluidnb_kernels.optimizer.launch import emit_update, gradient, update_kernel
from fluidnb_kernels.optimizer.proximal import PENALTIES, shrink
from fluidnb_kernels.rules import agree

_SLOTS = PARAM | GRAD | {"Moment: float": "the squares of gradients so far"} | RATE
_ADAGRAD = {"ParamOut": "Param", "MomentOut": "Moment"}
_EPSILON = Attr("float", 1e-6, "keeps the divisor from zero")
_formula = step_formula("Param Grad Moment LearningRate", "MomentOut ParamOut")


@optimizer_op("adagrad", _ADAGRAD, inputs=_SLOTS, attrs={"epsilon": _EPSILON}, master=True, cost="4 * Param")
@_formula
def adagrad(p: Operand, g: Operand, m: Operand, rate: Operand) -> Iterator[Operand]:
    """m' = m + g²; p' = p - lr · g / (√m' + epsilon).

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [4.0], "Moment": [0.0], "LearningRate": [0.5]}
        >>> run_op("adagrad", x)["ParamOut"].round(4)
        array([0.5])

    Source: Duchi, Hazan, Singer (JMLR 2011); Fluid's adagrad_op.
    """
    m = m + g * g
    yield m
    root = np.sqrt(m) + p.attr("epsilon")
    yield p - g * rate / root


@optimizer_op(
    "decayed_adagrad",
    _ADAGRAD,
    inputs=_SLOTS,
    attrs={"decay": Attr("float", 0.95, "exponential decay rate of Moment"), "epsilon": _EPSILON},
    cost="5 * Param",
)
@_formula
def decayed_adagrad(p: Operand, g: Operand, m: Operand, rate: Operand) -> Iterator[Operand]:
    """m' = decay · m + (1 - decay) · g²; p' = p - lr · g / (√m' + epsilon).

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [4.0], "Moment": [0.0], "LearningRate": [0.5]}
        >>> run_op("decayed_adagrad", x, {"decay": 0.0})["ParamOut"].round(4)
        array([0.5])

    Source: Fluid's decayed_adagrad_op.
    """
    m = running_mean(m, g * g, p.attr("decay"))
    yield m
    root = np.sqrt(m) + p.attr("epsilon")
    yield p - g * rate / root


@optimizer_op("proximal_adagrad", _ADAGRAD, inputs=_SLOTS, attrs=PENALTIES, cost="6 * Param")
@_formula
def proximal_adagrad(p: Operand, g: Operand, m: Operand, rate: Operand) -> Iterator[Operand]:
    """m' = m + g²; p' = the proximal point of p - lr · g / √m'; see proximal_gd.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [4.0], "Moment": [0.0], "LearningRate": [0.5]}
        >>> run_op("proximal_adagrad", x, {"l1": 1.0})["ParamOut"]
        array([0.])

    Source: Duchi, Singer (JMLR 2009); Fluid's proximal_adagrad_op.
    """
    m = m + g * g
    yield m
    yield shrink(p - g * rate / np.sqrt(m), rate)


update_kernel("adagrad", "Moment", numbers=lambda b: (1, 1, b.attr("epsilon")))
update_kernel(
    "decayed_adagrad", "Moment", step="adagrad",
    numbers=lambda b: (b.attr("decay"), 1 - b.attr("decay"), b.attr("epsilon")),
)  # fmt: skip
update_kernel("proximal_adagrad", "Moment", numbers=lambda b: (b.attr("l1"), b.attr("l2")))


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


_RMSPROP = {"ParamOut": "Param", "MomentOut": "Moment", "MeanSquareOut": "MeanSquare"}


def _infer(c: Context) -> None:
    updates(_RMSPROP)(c)
    c.require(
        c.has("MeanGrad") or not c.attr("centered"), "rmsprop needs Input(MeanGrad) when it is centered.",
        expected="MeanGrad", received="none",
    )  # fmt: skip
    c.require(
        not c.has("MeanGrad") or agree(c["MeanGrad"].shape, c["Param"].shape),
        "Param and MeanGrad must have the same shape.", expected=list(c["Param"].shape),
        received=list(c["MeanGrad"].shape) if c.has("MeanGrad") else None,
    )  # fmt: skip
    if c.wants("MeanGradOut"):
        like = c["MeanGrad"] if c.has("MeanGrad") else c["Param"]
        c.set("MeanGradOut", like.shape, like.dtype)


@optimizer_op(
    "rmsprop",
    _RMSPROP,
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
    alias={"MeanGradOut": "MeanGrad"}, cuda=FLOATS,
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
    if b.on_cuda:
        states = [(b[slot], b[slot + "Out"]) for slot in ("MeanSquare", "Moment")]
        numbers = b.attr("decay"), b.attr("epsilon"), b.attr("momentum"), b.has("MeanGrad")
        if not b.wants("MeanGradOut") and not b.attr("centered"):
            return emit_update(b, "rmsprop", states, numbers)
        mean = b["MeanGrad"] if b.has("MeanGrad") else b["Param"]
        states.append((mean, b["MeanGradOut"] if b.wants("MeanGradOut") else b.like(mean)))
        return emit_update(b, "rmsprop_centered" if b.attr("centered") else "rmsprop_kept", states, numbers)
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


@c_code("adagrad", "decayed_adagrad", function="adagrad", file="update.c")
def _adagrad_in_c(c: Context) -> dict[str, Constant]:
    stays, comes = (1.0, 1.0) if c.definition.type == "adagrad" else (c.attr("decay"), 1 - c.attr("decay"))
    return {"COUNT": c["Param"].size, "STAYS": stays, "COMES": comes, "EPSILON": c.attr("epsilon")}


@c_code("adadelta", file="update.c")
def _adadelta_in_c(c: Context) -> dict[str, Constant]:
    return {"COUNT": c["Param"].size, "RHO": c.attr("rho"), "EPSILON": c.attr("epsilon")}


@c_code("rmsprop", file="update.c")
def _rmsprop_in_c(c: Context) -> dict[str, Constant]:
    numbers = {name.upper(): c.attr(name) for name in ("decay", "momentum", "epsilon", "centered")}
    return {"COUNT": c["Param"].size, **numbers}


@c_code("proximal_adagrad", file="update.c")
def _proximal_adagrad_in_c(c: Context) -> dict[str, Constant]:
    return {"COUNT": c["Param"].size, "L1": c.attr("l1"), "L2": c.attr("l2")}
