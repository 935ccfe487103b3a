"""sgd and momentum: gradient descent, without and with velocity."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context
from fluidnb.values import SelectedRows
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.optimizer.common import GRAD, MULTI_PRECISION, PARAM, RATE, optimizer_op, scalar, updates
from fluidnb_kernels.optimizer.launch import copied, emit_held_update, emit_sparse_update, emit_update, gradient
from fluidnb_kernels.rows.values import merged, places_of, shape_of, value_array


def step_rows(param: Array, grad: SelectedRows, rate: Array) -> None:
    """Take a step in the rows that have a gradient."""
    rows, sums = merged(grad.rows_, value_array(grad))
    param[rows] -= rate * sums


def step_held(param: SelectedRows, grad: SelectedRows, rate: Array) -> None:
    """Take a step in the rows of a parameter that is SelectedRows itself."""
    rows, sums = merged(grad.rows_, value_array(grad))
    value_array(param)[places_of(param.rows_, rows)] -= rate * sums


_UPDATES = {"ParamOut": "Param"}


def _sgd_infer(c: Context) -> None:
    if not (isinstance(c, Binder) and c.is_rows("Param")):
        return updates(_UPDATES)(c)
    param, grad = c["Param"], c["Grad"]
    c.require(
        c.is_rows("Grad"), "A Param of sgd that is SelectedRows needs such a Grad.",
        expected="SelectedRows", received=f"a tensor {list(shape_of(grad))}",
        hint="layers.embedding(..., is_sparse=True) has a gradient in rows.",
    )  # fmt: skip
    c.require(
        shape_of(param)[1:] == shape_of(grad)[1:], "The rows of Param and Grad must have the same shape.",
        expected=list(shape_of(param)[1:]), received=list(shape_of(grad)[1:]),
    )  # fmt: skip
    c.put("ParamOut", param)


@optimizer_op(
    "sgd",
    _UPDATES,
    inputs={"Param: float | rows": "the parameter, any shape; or SelectedRows, with such a Grad"} | RATE | GRAD,
    master=True,
    cost="Param",
    infer=_sgd_infer,
    cuda=FLOATS,
)
def sgd(b: Binder) -> None:
    """ParamOut = Param - LearningRate · Grad.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sgd", {"Param": [1.0, 2.0], "Grad": [1.0, -1.0], "LearningRate": [0.5]})["ParamOut"]
        array([0.5, 2.5])

    Source: Fluid's sgd_op.
    """
    if b.on_cuda:  # one launch; a sparse gradient changes its rows alone
        if b.is_rows("Param"):
            emit_held_update(b, "sgd")
        elif b.is_rows("Grad"):
            copied(b, b["Param"], b["ParamOut"])
            emit_sparse_update(b, "sgd")
        else:
            emit_update(b, "sgd")
        return None
    param, grad = b["Param"], b["Grad"]
    if b.is_rows("Param"):
        return b(step_held, param, grad, scalar(b, "LearningRate"))
    if b.is_rows("Grad"):
        if b["ParamOut"] is not param:
            b(np.copyto, b["ParamOut"], param)
        return b(step_rows, b["ParamOut"], grad, scalar(b, "LearningRate"))
    step = b.like(param)
    b(np.multiply, grad, scalar(b, "LearningRate"), out=step)
    return b(np.subtract, param, step, out=b["ParamOut"])


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
