"""adamw: Adam, with a weight decay that does not go through the moments."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, get_op, kernel, op
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.optimizer.adam import emit_step, emit_step_on_cuda
from fluidnb_kernels.optimizer.common import scalar

_ADAM = get_op("adam")


@op(
    "adamw",
    inputs={s.key: s.phrase for s in _ADAM.inputs.values()},
    outputs={s.key: s.phrase for s in _ADAM.outputs.values()},
    attrs={
        **_ADAM.attrs,
        "lr_ratio": Attr("float", 1.0, "factor of the learning rate"),
        "coeff": Attr("float", 0.01, "weight decay"),
        "with_decay": Attr("bool", False, "whether there is weight decay"),
    },
    cost="9 * Param",
    infer=_ADAM.infer,
    alias=_ADAM.alias,
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
)
def adamw(b: Binder) -> None:
    """p' = the step of adam from p · (1 - lr · coeff), with lr = lr_ratio · LearningRate.

    Example:
        >>> from fluidnb.testing import run_op
        >>> state = {"Moment1": [0.0], "Moment2": [0.0], "Beta1Pow": [0.9], "Beta2Pow": [0.999]}
        >>> step = {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1], **state}
        >>> run_op("adamw", step, {"with_decay": True, "coeff": 0.5})["ParamOut"].round(4)
        array([0.85])

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (ICLR 2019); Paddle's adamw_op.
    """
    param, rate = b["Param"], scalar(b, "LearningRate")
    if b.attr("lr_ratio") != 1:
        rate = apply(b, np.multiply, rate, b.const(b.attr("lr_ratio"), rate.dtype))
    if b.attr("with_decay"):
        share = apply(b, np.multiply, rate, b.const(-b.attr("coeff"), rate.dtype))
        param = apply(b, np.multiply, param, apply(b, np.add, share, b.const(1, share.dtype)))
    emit_step(b, param, rate)


@kernel("adamw", place="cuda", dtypes=FLOATS)
def adamw_on_cuda(b: Binder) -> None:
    emit_step_on_cuda(b, b.attr("coeff") if b.attr("with_decay") else 0.0, b.attr("lr_ratio"))
