"""adagrad, decayed_adagrad and proximal_adagrad: steps scaled by the squares of gradients so far."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Attr
from fluidnb_kernels.arithmetic import Operand
from fluidnb_kernels.optimizer.common import GRAD, PARAM, RATE, optimizer_op, running_mean, step_formula
from fluidnb_kernels.optimizer.launch import update_kernel
from fluidnb_kernels.optimizer.proximal import PENALTIES, shrink

_SLOTS = PARAM | GRAD | {"Moment: float": "the squares of gradients so far"} | RATE
_UPDATES = {"ParamOut": "Param", "MomentOut": "Moment"}
_EPSILON = Attr("float", 1e-6, "keeps the divisor from zero")
_formula = step_formula("Param Grad Moment LearningRate", "MomentOut ParamOut")


@optimizer_op("adagrad", _UPDATES, inputs=_SLOTS, attrs={"epsilon": _EPSILON}, master=True, cost="4 * Param")
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
    _UPDATES,
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


@optimizer_op("proximal_adagrad", _UPDATES, inputs=_SLOTS, attrs=PENALTIES, cost="6 * Param")
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
