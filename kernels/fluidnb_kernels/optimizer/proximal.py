"""proximal_gd and ftrl: penalties that keep parameters of no use at zero."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import SelectedRows
from fluidnb_kernels.arithmetic import Operand, values
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.optimizer.common import GRAD, PARAM, RATE, optimizer_op, scalar, step_formula
from fluidnb_kernels.optimizer.launch import copied, emit_sparse_update, emit_update, update_kernel
from fluidnb_kernels.rows.values import merged, value_array

#: The weights of penalties.
PENALTIES = {
    "l1": Attr("float", 0.0, "weight of the sum of absolute values"),
    "l2": Attr("float", 0.0, "that of squares"),
}


def shrink(p: Operand, rate: Operand) -> Operand:
    """The proximal point: sign(p) · max(0, |p| - lr · l1) / (1 + lr · l2)."""
    size = np.maximum(abs(p) - rate * p.attr("l1"), 0) / (rate * p.attr("l2") + 1)
    return size * np.sign(p)


@optimizer_op(
    "proximal_gd",
    {"ParamOut": "Param"},
    inputs=PARAM | {"Grad: float": "its gradient, same shape"} | RATE,
    attrs=PENALTIES,
    cost="4 * Param",
)
@step_formula("Param Grad LearningRate", "ParamOut")
def proximal_gd(p: Operand, g: Operand, rate: Operand) -> Operand:
    """p' = sign(q) · max(0, |q| - lr · l1) / (1 + lr · l2), with q = p - lr · g.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("proximal_gd", {"Param": [1.0], "Grad": [1.0], "LearningRate": [0.25]}, {"l1": 1.0})["ParamOut"]
        array([0.5])

    Source: Duchi, Singer (JMLR 2009); Fluid's proximal_gd_op.
    """
    return shrink(p - g * rate, rate)


update_kernel("proximal_gd", numbers=lambda b: (b.attr("l1"), b.attr("l2")))


#: Added to both weights, so that a parameter that never had a gradient stays 0 and is not 0 / 0.
TINY = 1e-10

_UPDATES = {"ParamOut": "Param", "SquaredAccumOut": "SquaredAccumulator", "LinearAccumOut": "LinearAccumulator"}


def step_rows(
    grad: SelectedRows, kept: tuple[Array, Array, Array], rate: Array, l1: float, l2: float, power: float
) -> None:
    """Take a step in the rows that have a gradient, and leave all others as they are."""
    rows, g = merged(grad.rows_, value_array(grad))
    param, square, linear = kept
    total = square[rows] + g * g
    root = total**power
    z = linear[rows] + g - (root - square[rows] ** power) / rate * param[rows]
    param[rows] = (z.clip(-l1, l1) - z) / (root / rate + 2 * l2)
    square[rows], linear[rows] = total, z


@optimizer_op(
    "ftrl",
    _UPDATES,
    inputs=PARAM | {
        "SquaredAccumulator": "the sum of squares of gradients",
        "LinearAccumulator": "the sum of gradients, less what parameters account for",
    } | GRAD | RATE,
    attrs={
        "l1": Attr("float", 0.0, "weight of the sum of absolute values"),
        "l2": Attr("float", 0.0, "weight of the sum of squares; it counts twice"),
        "lr_power": Attr("float", -0.5, "how the learning rate falls with the squares"),
    },
    cost="9 * Param", cuda=FLOATS,
)  # fmt: skip
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
    if b.on_cuda:  # one launch; a sparse gradient changes its rows alone
        numbers = b.attr("l1") + TINY, 2 * (b.attr("l2") + TINY), -b.attr("lr_power")
        if b.is_rows("Grad"):
            for out, source in _UPDATES.items():
                copied(b, b[source], b[out])
            emit_sparse_update(b, "ftrl", [b["SquaredAccumOut"], b["LinearAccumOut"]], numbers)
        else:
            states = [(b[source], b[out]) for out, source in _UPDATES.items() if source != "Param"]
            emit_update(b, "ftrl", states, numbers)
        return None
    param, grad, square, linear = b["Param"], b["Grad"], b["SquaredAccumulator"], b["LinearAccumulator"]
    rate, l1, l2 = scalar(b, "LearningRate"), b.attr("l1") + TINY, b.attr("l2") + TINY
    if b.is_rows("Grad"):
        for out, source in _UPDATES.items():
            if b[out] is not b[source]:
                b(np.copyto, b[out], b[source])
        kept = tuple(b[out] for out in _UPDATES)
        b(step_rows, grad, kept, rate, l1, l2, -b.attr("lr_power"))
        return

    def power(x: Operand) -> Operand:
        """x to the power of -lr_power."""
        return np.sqrt(x) if b.attr("lr_power") == -0.5 else np.power(x, -b.attr("lr_power"))

    p, g, s, z, lr = values(b, param, grad, square, linear, rate)
    total = s + g * g
    root = power(total)
    sigma = (root - power(s)) / lr * p
    z = z + g - sigma
    divisor = root / lr + 2 * l2
    limited = np.minimum(np.maximum(z, -l1), l1)  # 0 remains of what is between -l1 and l1
    ((limited - z) / divisor).into(b["ParamOut"])
    b(np.copyto, b["SquaredAccumOut"], total.array)
    b(np.copyto, b["LinearAccumOut"], z.array)


@c_code("proximal_gd", "ftrl", file="update.c")
def _proximal_in_c(c: Context) -> dict[str, Constant]:
    l1, l2 = c.attr("l1"), c.attr("l2")
    if c.definition.type == "ftrl":
        return {"COUNT": c["Param"].size, "L1": l1 + TINY, "L2": 2 * (l2 + TINY), "POWER": -c.attr("lr_power")}
    return {"COUNT": c["Param"].size, "L1": l1, "L2": l2}
