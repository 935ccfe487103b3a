"""ftrl: follow the regularized leader, which keeps parameters of no use at zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, kernel, op
from fluidnb.values import SelectedRows
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.optimizer.common import scalar, updates
from fluidnb_kernels.optimizer.launch import copied, emit_sparse_update, emit_update
from fluidnb_kernels.rows.values import merged, value_array

Array = Any

#: Added to both weights, so that a parameter that never had a gradient stays 0 and is not 0 / 0.
TINY = 1e-10

_UPDATES = {"ParamOut": "Param", "SquaredAccumOut": "SquaredAccumulator", "LinearAccumOut": "LinearAccumulator"}


def _power(b: Binder, x: Array) -> Array:
    """Emit x to the power of -lr_power."""
    power = -b.attr("lr_power")
    return apply(b, np.sqrt, x) if power == 0.5 else apply(b, np.power, x, b.const(power, x.dtype))


def step_rows(
    grad: SelectedRows, kept: tuple[Array, Array, Array], rate: Array, l1: float, l2: float, power: float
) -> None:
    """Take a step in the rows that have a gradient, and leave all others as they are.

    Args:
        kept: parameter, SquaredAccumulator and LinearAccumulator, changed.

    Example:
        >>> from fluidnb.values import LoDTensor
        >>> p, s, z = np.ones((2, 1)), np.zeros((2, 1)), np.zeros((2, 1))
        >>> grad = SelectedRows([1], 2, LoDTensor(np.full((1, 1), 2.0)))
        >>> step_rows(grad, (p, s, z), np.array(0.5), 0.0, 0.0, 0.5); p.ravel(), s.ravel(), z.ravel()
        (array([1. , 0.5]), array([0., 4.]), array([ 0., -2.]))
    """
    rows, g = merged(grad.rows_, value_array(grad))
    param, square, linear = kept
    total = square[rows] + g * g
    root = total**power
    z = linear[rows] + g - (root - square[rows] ** power) / rate * param[rows]
    param[rows] = (z.clip(-l1, l1) - z) / (root / rate + 2 * l2)
    square[rows], linear[rows] = total, z


@op(
    "ftrl",
    inputs={
        "Param: float": "the parameter, any shape",
        "SquaredAccumulator": "the sum of squares of gradients",
        "LinearAccumulator": "the sum of gradients, less what parameters account for",
        "Grad: float | rows": "its gradient, same shape; or SelectedRows",
        "LearningRate: float[1]": "one number",
    },
    outputs={
        "ParamOut": "the parameter after the step",
        "SquaredAccumOut": "SquaredAccumulator after the step",
        "LinearAccumOut": "LinearAccumulator after the step",
    },
    attrs={
        "l1": Attr("float", 0.0, "weight of the sum of absolute values"),
        "l2": Attr("float", 0.0, "weight of the sum of squares; it counts twice"),
        "lr_power": Attr("float", -0.5, "how the learning rate falls with the squares"),
    },
    cost="9 * Param",
    infer=updates(_UPDATES),
    alias=_UPDATES,
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def ftrl(b: Binder) -> None:
    """s' = s + g²; z' = z + g - (s'^q - s^q) / lr · p; p' = (sign(z') l1 - z') / (s'^q / lr + 2 l2).

    Here q = -lr_power, and p' = 0 where |z'| <= l1. With a gradient in SelectedRows only its rows take a step.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [0.0], "Grad": [2.0], "SquaredAccumulator": [0.0], "LinearAccumulator": [0.0]}
        >>> run_op("ftrl", {**x, "LearningRate": [0.5]})["ParamOut"].round(4)
        array([-0.5])

    Source: McMahan et al., Ad click prediction (KDD 2013); Fluid's ftrl_op.
    """
    param, grad, square, linear = b["Param"], b["Grad"], b["SquaredAccumulator"], b["LinearAccumulator"]
    rate, dtype, l1, l2 = scalar(b, "LearningRate"), param.dtype, b.attr("l1") + TINY, b.attr("l2") + TINY
    if b.is_rows("Grad"):
        for out, source in _UPDATES.items():
            if b[out] is not b[source]:
                b(np.copyto, b[out], b[source])
        kept = tuple(b[out] for out in _UPDATES)
        b(step_rows, grad, kept, rate, l1, l2, -b.attr("lr_power"))
        return
    total = apply(b, np.add, square, apply(b, np.multiply, grad, grad))
    root = _power(b, total)
    sigma = apply(b, np.subtract, root, _power(b, square))
    b(np.divide, sigma, rate, out=sigma)
    b(np.multiply, sigma, param, out=sigma)
    z = apply(b, np.add, linear, grad)
    b(np.subtract, z, sigma, out=z)
    divisor = apply(b, np.divide, root, rate)
    b(np.add, divisor, b.const(2 * l2, dtype), out=divisor)
    inside = apply(b, np.maximum, z, b.const(-l1, dtype))
    b(np.minimum, inside, b.const(l1, dtype), out=inside)  # 0 remains of what lies between -l1 and l1
    b(np.subtract, inside, z, out=inside)
    b(np.divide, inside, divisor, out=b["ParamOut"])
    b(np.copyto, b["SquaredAccumOut"], total)
    b(np.copyto, b["LinearAccumOut"], z)


@kernel("ftrl", place="cuda", dtypes=FLOATS)
def ftrl_on_cuda(b: Binder) -> None:
    """One launch; a sparse gradient changes its rows alone."""
    numbers = b.attr("l1") + TINY, 2 * (b.attr("l2") + TINY), -b.attr("lr_power")
    if b.is_rows("Grad"):
        for out, source in _UPDATES.items():
            copied(b, b[source], b[out])
        emit_sparse_update(b, "ftrl", [b["SquaredAccumOut"], b["LinearAccumOut"]], numbers)
    else:
        states = [(b[source], b[out]) for out, source in _UPDATES.items() if source != "Param"]
        emit_update(b, "ftrl", states, numbers)
