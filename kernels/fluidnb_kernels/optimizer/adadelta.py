"""adadelta: steps as large as those of the past, whatever the gradient's unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, kernel, op
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.optimizer.common import gradient, scalar, updates
from fluidnb_kernels.optimizer.launch import emit_update

Array = Any

_UPDATES = {
    "ParamOut": "Param",
    "AvgSquaredGradOut": "AvgSquaredGrad",
    "AvgSquaredUpdateOut": "AvgSquaredUpdate",
}


@op(
    "adadelta",
    inputs={
        "Param: float": "the parameter, any shape",
        "Grad: float | rows": "its gradient, same shape; or SelectedRows",
        "AvgSquaredGrad: float": "running mean of the gradient's square",
        "AvgSquaredUpdate: float": "running mean of the step's square",
        "LearningRate?: float[1]": "without it steps are taken whole",
        "MasterParam?: float32": "copy of a float16 parameter",
    },
    outputs={
        "ParamOut": "the parameter after the step",
        "AvgSquaredGradOut": "AvgSquaredGrad after the step",
        "AvgSquaredUpdateOut": "AvgSquaredUpdate after the step",
        "MasterParamOut?": "its float32 copy after the step",
    },
    attrs={
        "rho": Attr("float", 0.95, "how much of the means stays"),
        "epsilon": Attr("float", 1e-6, "keeps the divisor from zero"),
        "multi_precision": Attr("bool", False, "whether MasterParam is used"),
    },
    cost="8 * Param",
    infer=updates(_UPDATES),
    alias=_UPDATES,
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def adadelta(b: Binder) -> None:
    """a' = rho a + (1 - rho) g²; s = √((u + eps) / (a' + eps)) g; u' = rho u + (1 - rho) s²; p' = p - lr s.

    Here a is AvgSquaredGrad and u is AvgSquaredUpdate.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [2.0], "AvgSquaredGrad": [0.0], "AvgSquaredUpdate": [3.0]}
        >>> run_op("adadelta", {**x, "LearningRate": [0.5]}, {"rho": 0.25})["ParamOut"].round(4)
        array([0.])

    Source: Zeiler, ADADELTA (2012); Fluid's adadelta_op.
    """
    grad, rho = gradient(b), b.attr("rho")
    epsilon = b.const(b.attr("epsilon"), grad.dtype)
    _mean(b, "AvgSquaredGrad", grad, rho)
    step = apply(b, np.add, b["AvgSquaredUpdate"], epsilon)
    b(np.divide, step, apply(b, np.add, b["AvgSquaredGradOut"], epsilon), out=step)
    b(np.sqrt, step, out=step)
    b(np.multiply, step, grad, out=step)
    _mean(b, "AvgSquaredUpdate", step, rho)
    if b.has("LearningRate"):
        step = apply(b, np.multiply, step, scalar(b, "LearningRate"))
    b(np.subtract, b["Param"], step, out=b["ParamOut"])


def _mean(b: Binder, slot: str, value: Array, rho: float) -> None:
    """Emit the running mean of a square."""
    square = apply(b, np.multiply, value, value)
    b(np.multiply, square, b.const(1 - rho, square.dtype), out=square)
    b(np.add, apply(b, np.multiply, b[slot], b.const(rho, square.dtype)), square, out=b[slot + "Out"])


@kernel("adadelta", place="cuda", dtypes=FLOATS)
def adadelta_on_cuda(b: Binder) -> None:
    """One launch."""
    states = [(b[slot], b[slot + "Out"]) for slot in ("AvgSquaredGrad", "AvgSquaredUpdate")]
    emit_update(b, "adadelta", states, (b.attr("rho"), b.attr("epsilon"), b.has("LearningRate")))
