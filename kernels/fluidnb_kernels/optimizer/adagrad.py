"""adagrad, decayed_adagrad and proximal_adagrad: steps scaled by the squares of gradients so far."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, kernel, op
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.optimizer.common import gradient, scalar, updates
from fluidnb_kernels.optimizer.launch import emit_update
from fluidnb_kernels.optimizer.proximal import shrink

Array = Any

_SLOTS = {
    "Param: float": "the parameter, any shape",
    "Grad: float | rows": "its gradient, same shape; or SelectedRows",
    "Moment: float": "the squares of gradients so far",
    "LearningRate: float[1]": "one number",
}
_OUTS = {"ParamOut": "the parameter after the step", "MomentOut": "Moment after the step"}
_UPDATES = {"ParamOut": "Param", "MomentOut": "Moment"}
_EPSILON = Attr("float", 1e-6, "keeps the divisor from zero")


def _step(b: Binder, grad: Array, moment: Array) -> None:
    """Emit p' = p - lr · g / (√moment + epsilon)."""
    root = apply(b, np.sqrt, moment)
    b(np.add, root, b.const(b.attr("epsilon"), root.dtype), out=root)
    t = apply(b, np.multiply, grad, scalar(b, "LearningRate"))
    b(np.divide, t, root, out=t)
    b(np.subtract, b["Param"], t, out=b["ParamOut"])


@op(
    "adagrad",
    inputs={**_SLOTS, "MasterParam?: float32": "copy of a float16 parameter"},
    outputs={**_OUTS, "MasterParamOut?": "its float32 copy after the step"},
    attrs={"epsilon": _EPSILON, "multi_precision": Attr("bool", False, "whether MasterParam is used")},
    cost="4 * Param",
    infer=updates(_UPDATES),
    alias=_UPDATES,
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def adagrad(b: Binder) -> None:
    """m' = m + g²; p' = p - lr · g / (√m' + epsilon).

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [4.0], "Moment": [0.0], "LearningRate": [0.5]}
        >>> run_op("adagrad", x)["ParamOut"].round(4)
        array([0.5])

    Source: Duchi, Hazan, Singer (JMLR 2011); Fluid's adagrad_op.
    """
    grad = gradient(b)
    b(np.add, b["Moment"], apply(b, np.multiply, grad, grad), out=b["MomentOut"])
    _step(b, grad, b["MomentOut"])


@op(
    "decayed_adagrad",
    inputs=_SLOTS,
    outputs=_OUTS,
    attrs={"decay": Attr("float", 0.95, "exponential decay rate of Moment"), "epsilon": _EPSILON},
    cost="5 * Param",
    infer=updates(_UPDATES),
    alias=_UPDATES,
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def decayed_adagrad(b: Binder) -> None:
    """m' = decay · m + (1 - decay) · g²; p' = p - lr · g / (√m' + epsilon).

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [4.0], "Moment": [0.0], "LearningRate": [0.5]}
        >>> run_op("decayed_adagrad", x, {"decay": 0.0})["ParamOut"].round(4)
        array([0.5])

    Source: Fluid's decayed_adagrad_op.
    """
    grad, decay = gradient(b), b.attr("decay")
    square = apply(b, np.multiply, grad, grad)
    b(np.multiply, square, b.const(1 - decay, square.dtype), out=square)
    b(np.add, apply(b, np.multiply, b["Moment"], b.const(decay, square.dtype)), square, out=b["MomentOut"])
    _step(b, grad, b["MomentOut"])


@op(
    "proximal_adagrad",
    inputs=_SLOTS,
    outputs=_OUTS,
    attrs={
        "l1": Attr("float", 0.0, "weight of the sum of absolute values"),
        "l2": Attr("float", 0.0, "that of squares"),
    },
    cost="6 * Param",
    infer=updates(_UPDATES),
    alias=_UPDATES,
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def proximal_adagrad(b: Binder) -> None:
    """m' = m + g²; p' = the proximal point of p - lr · g / √m'; see proximal_gd.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [4.0], "Moment": [0.0], "LearningRate": [0.5]}
        >>> run_op("proximal_adagrad", x, {"l1": 1.0})["ParamOut"]
        array([0.])

    Source: Duchi, Singer (JMLR 2009); Fluid's proximal_adagrad_op.
    """
    grad, rate = gradient(b), scalar(b, "LearningRate")
    b(np.add, b["Moment"], apply(b, np.multiply, grad, grad), out=b["MomentOut"])
    t = apply(b, np.multiply, grad, rate)
    b(np.divide, t, apply(b, np.sqrt, b["MomentOut"]), out=t)
    shrink(b, apply(b, np.subtract, b["Param"], t), rate)


@kernel("adagrad", place="cuda", dtypes=FLOATS)
def adagrad_on_cuda(b: Binder) -> None:
    """One launch; all of the moment stays, and all of the square comes."""
    emit_update(b, "adagrad", [(b["Moment"], b["MomentOut"])], (1, 1, b.attr("epsilon")))


@kernel("decayed_adagrad", place="cuda", dtypes=FLOATS)
def decayed_adagrad_on_cuda(b: Binder) -> None:
    """One launch."""
    decay = b.attr("decay")
    emit_update(b, "adagrad", [(b["Moment"], b["MomentOut"])], (decay, 1 - decay, b.attr("epsilon")))


@kernel("proximal_adagrad", place="cuda", dtypes=FLOATS)
def proximal_adagrad_on_cuda(b: Binder) -> None:
    """One launch."""
    emit_update(b, "proximal_adagrad", [(b["Moment"], b["MomentOut"])], (b.attr("l1"), b.attr("l2")))
