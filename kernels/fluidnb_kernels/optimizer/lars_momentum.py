"""lars_momentum: momentum whose learning rate follows the sizes of parameter and gradient."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, kernel, op
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.optimizer.trust_ratio import emit_lars
from fluidnb_kernels.rules import agree


def _infer(c: Context) -> None:
    for i, (param, grad) in enumerate(zip(c.all("Param"), c.all("Grad"), strict=True)):
        c.require(
            agree(param.shape, grad.shape), "Param and Grad must have the same shape.",
            expected=f"shape {tuple(param.shape)}, the shape of Param", received=f"shape {tuple(grad.shape)}",
        )  # fmt: skip
        velocity = c.all("Velocity")[i]
        c.set("ParamOut", param.shape, param.dtype, (), i)
        c.set("VelocityOut", velocity.shape, velocity.dtype, (), i)


def local_rate(param: Array, grad: Array, rate: Array, coeff: float, decay: float, epsilon: float, out: Array) -> None:
    """Write the learning rate of a parameter: the common one without decay, or where a size is zero."""
    p, g = np.sqrt(np.vdot(param, param)), np.sqrt(np.vdot(grad, grad))
    trusted = decay > 0 and p > 0 and g > 0
    out[...] = rate.item() * coeff * p / (g + decay * p + epsilon) if trusted else rate.item()


@op(
    "lars_momentum",
    inputs={
        "Param*: float": "parameters, any shape",
        "Grad*: float": "their gradients, same shapes",
        "Velocity*: float": "their velocities, same shapes",
        "LearningRate*: float[1]": "one number each",
        "MasterParam*?: float32": "copies of float16 parameters",
    },
    outputs={
        "ParamOut*": "the parameters after the step",
        "VelocityOut*": "the velocities after the step",
        "MasterParamOut*?": "their float32 copies after the step",
    },
    attrs={
        "mu": Attr("float", doc="momentum: decay rate of the velocity"),
        "lars_coeff": Attr("float", 0.001, "how far to trust the ratio of sizes"),
        "lars_weight_decay": Attr("floats", [0.0005], "weight decay, one for each parameter or one for all"),
        "epsilon": Attr("float", 0.0, "keeps the divisor from zero"),
        "rescale_grad": Attr("float", 1.0, "factor of the gradient"),
        "multi_precision": Attr("bool", False, "whether MasterParam is used"),
    },
    cost="5 * Param",
    infer=_infer,
    alias={"ParamOut": "Param", "VelocityOut": "Velocity"},
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def lars_momentum(b: Binder) -> None:
    """r = lr · coeff · |p| / (|g| + decay · |p| + eps); v' = mu · v + r · (g + decay · p); p' = p - v'.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [3.0], "Grad": [1.0], "Velocity": [0.0], "LearningRate": [1.0]}
        >>> run_op("lars_momentum", x, {"mu": 0.9, "lars_coeff": 0.5, "lars_weight_decay": [1.0]})["ParamOut"]
        array([1.5])

    Source: You, Gitman, Ginsburg, Large batch training (2017); Fluid's lars_momentum_op.
    """
    decays = _decays(b)
    for i, (param, grad, velocity) in enumerate(zip(b.all("Param"), b.all("Grad"), b.all("Velocity"), strict=True)):
        dtype, decay = param.dtype, decays[min(i, len(decays) - 1)]
        rates, rate = b.all("LearningRate"), b.tmp((), dtype)
        if b.attr("rescale_grad") != 1.0:
            grad = apply(b, np.multiply, grad, b.const(b.attr("rescale_grad"), dtype))
        common = rates[min(i, len(rates) - 1)]
        b(local_rate, param, grad, common, b.attr("lars_coeff"), decay, b.attr("epsilon"), rate)
        t = apply(b, np.multiply, param, b.const(decay, dtype))
        b(np.add, t, grad, out=t)
        b(np.multiply, t, rate, out=t)
        out = b.all("VelocityOut")[i]
        b(np.add, apply(b, np.multiply, velocity, b.const(b.attr("mu"), dtype)), t, out=out)
        b(np.subtract, param, out, out=b.all("ParamOut")[i])


def _decays(b: Binder) -> list[float]:
    decays = b.attr("lars_weight_decay")
    return decays if isinstance(decays, list) else [decays]  # Fluid wrote one number


@kernel("lars_momentum", place="cuda", dtypes=FLOATS)
def lars_momentum_on_cuda(b: Binder) -> None:
    """Two launches for each parameter."""
    decays, rates = _decays(b), b.all("LearningRate")
    for i in range(len(b.all("Param"))):
        emit_lars(b, i, rates[min(i, len(rates) - 1)], decays[min(i, len(decays) - 1)])
