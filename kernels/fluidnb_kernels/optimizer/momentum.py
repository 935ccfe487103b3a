"""momentum: gradient descent with velocity."""

import numpy as np

from fluidnb.op import Attr, Binder, Context
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.optimizer.common import GRAD, MULTI_PRECISION, PARAM, RATE, optimizer_op, scalar
from fluidnb_kernels.optimizer.launch import emit_update, gradient


@optimizer_op(
    "momentum",
    {"ParamOut": "Param", "VelocityOut": "Velocity"},
    inputs=PARAM | GRAD | {"Velocity: float": "the velocity, same shape"} | RATE
    | {"MasterParam?: float32": "copy of a float16 parameter"},
    outputs={"MasterParamOut?": "its float32 copy after the step"},
    attrs={
        "mu": Attr("float", doc="momentum: decay rate of the velocity"),
        "use_nesterov": Attr("bool", False, "whether to look ahead"),
        "regularization_method": Attr("string", "", "l2_decay adds a decay to the gradient", enum=["", "l2_decay"]),
        "regularization_coeff": Attr("float", 0.0, "its coefficient"),
        "multi_precision": MULTI_PRECISION,
        "rescale_grad": Attr("float", 1.0, "factor of the gradient"),
    },
    cost="2 * Param", cuda=FLOATS,
)  # fmt: skip
def momentum(b: Binder) -> None:
    """v' = mu · v + g; p' = p - lr · v', or p - lr · (g + mu · v') with Nesterov.

    Here g = rescale_grad · Grad, plus regularization_coeff · Param with ``l2_decay``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [1.0], "Velocity": [2.0], "LearningRate": [0.1]}
        >>> out = run_op("momentum", x, {"mu": 0.5})
        >>> out["VelocityOut"], out["ParamOut"]
        (array([2.]), array([0.8]))

    Source: Fluid's momentum_op; Nesterov (1983) in the form of Sutskever et al. (ICML 2013).
    """
    if b.on_cuda:
        decay = b.attr("regularization_coeff") if b.attr("regularization_method") == "l2_decay" else 0.0
        numbers = b.attr("mu"), b.attr("use_nesterov"), b.attr("rescale_grad"), decay
        return emit_update(b, "momentum", [(b["Velocity"], b["VelocityOut"])], numbers)
    param, grad, velocity, rate = b["Param"], gradient(b), b["Velocity"], scalar(b, "LearningRate")
    dtype = param.dtype
    if b.attr("rescale_grad") != 1.0:
        scaled = b.like(param)
        b(np.multiply, grad, b.const(b.attr("rescale_grad"), dtype), out=scaled)
        grad = scaled
    if b.attr("regularization_method") == "l2_decay":
        decayed = b.like(param)
        b(np.multiply, param, b.const(b.attr("regularization_coeff"), dtype), out=decayed)
        b(np.add, decayed, grad, out=decayed)
        grad = decayed
    mu, new, step = b.const(b.attr("mu"), dtype), b["VelocityOut"], b.like(param)
    b(np.multiply, velocity, mu, out=step)
    b(np.add, step, grad, out=new)
    if b.attr("use_nesterov"):
        ahead = b.like(param)
        b(np.multiply, new, mu, out=step)
        b(np.add, step, grad, out=ahead)
        b(np.multiply, ahead, rate, out=step)
    else:
        b(np.multiply, new, rate, out=step)
    b(np.subtract, param, step, out=b["ParamOut"])


@c_code("momentum", file="update.c")
def _momentum_in_c(c: Context) -> dict[str, Constant]:
    decay = c.attr("regularization_coeff") if c.attr("regularization_method") == "l2_decay" else 0.0
    numbers = {"MU": c.attr("mu"), "FACTOR": c.attr("rescale_grad"), "DECAY": decay}
    return {"COUNT": c["Param"].size, "NESTEROV": c.attr("use_nesterov"), **numbers}
