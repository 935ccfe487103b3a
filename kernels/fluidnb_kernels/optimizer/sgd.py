"""sgd: stochastic gradient descent."""

import numpy as np

from fluidnb.op import Array, Binder, Context
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import SelectedRows
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.optimizer.common import GRAD, RATE, optimizer_op, scalar, updates
from fluidnb_kernels.optimizer.launch import copied, emit_held_update, emit_sparse_update, emit_update
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


def _infer(c: Context) -> None:
    if not c.is_rows("Param"):
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
    if isinstance(c, Binder):
        c.put("ParamOut", param)
    else:
        c.set("ParamOut", param.shape, param.dtype)


@optimizer_op(
    "sgd",
    _UPDATES,
    inputs={"Param: float | rows": "the parameter, any shape; or SelectedRows, with such a Grad"} | RATE | GRAD,
    master=True,
    cost="Param",
    infer=_infer,
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


@c_code("sgd", file="update.c")
def _sgd_in_c(c: Context) -> dict[str, Constant]:
    return {"COUNT": c["Param"].size}
