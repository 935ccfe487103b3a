"""sgd: stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, kernel, op
from fluidnb.values import SelectedRows
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.optimizer.common import scalar, updates
from fluidnb_kernels.optimizer.on_cuda import copied, emit_sparse_update, emit_update
from fluidnb_kernels.rows.values import held, merged

Array = Any


def step_rows(param: Array, grad: SelectedRows, rate: Array) -> None:
    """Take a step in the rows that have a gradient.

    Args:
        param: changed.
        grad: the gradient.
        rate: the learning rate, one element.

    Example:
        >>> from fluidnb.values import LoDTensor
        >>> p = np.ones((2, 1)); step_rows(p, SelectedRows([1], 2, LoDTensor(np.ones((1, 1)))), np.array(0.5)); p
        array([[1. ],
               [0.5]])
    """
    rows, sums = merged(grad.rows_, held(grad))
    param[rows] -= rate * sums


@op(
    "sgd",
    inputs={
        "Param": "the parameter, any shape",
        "LearningRate": "one number",
        "Grad": "its gradient, same shape; or SelectedRows",
        "MasterParam?": "float32 copy of a float16 parameter",
    },
    outputs={"ParamOut": "the parameter after the step", "MasterParamOut?": "its float32 copy after the step"},
    attrs={"multi_precision": Attr("bool", False, "whether MasterParam is used")},
    infer=updates({"ParamOut": "Param"}),
    alias={"ParamOut": "Param"},
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def sgd(b: Binder) -> None:
    """ParamOut = Param - LearningRate · Grad.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sgd", {"Param": [1.0, 2.0], "Grad": [1.0, -1.0], "LearningRate": [0.5]})["ParamOut"]
        array([0.5, 2.5])

    Source: Fluid's sgd_op.
    """
    param, grad = b["Param"], b["Grad"]
    if b.is_rows("Grad"):
        if b["ParamOut"] is not param:
            b(np.copyto, b["ParamOut"], param)
        return b(step_rows, b["ParamOut"], grad, scalar(b, "LearningRate"))
    step = b.like(param)
    b(np.multiply, grad, scalar(b, "LearningRate"), out=step)
    return b(np.subtract, param, step, out=b["ParamOut"])


@kernel("sgd", place="cuda", dtypes=FLOATS)
def sgd_on_cuda(b: Binder) -> None:
    """One launch; a sparse gradient changes its rows alone."""
    if b.is_rows("Grad"):
        copied(b, b["Param"], b["ParamOut"])
        emit_sparse_update(b, "sgd")
    else:
        emit_update(b, "sgd")
