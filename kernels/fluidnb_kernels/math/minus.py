"""minus: the difference of two tensors of one shape."""

from collections.abc import Collection

import numpy as np

from fluidnb.op import EMPTY, GRAD, Binder, OpDef, OpDesc, grad_names, op
from fluidnb_kernels.elementwise.launch import CUDA, NUMBERS, binary
from fluidnb_kernels.math.scale import scale_desc
from fluidnb_kernels.rules import alike


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    g = desc.outs["Out"][0] + GRAD
    sides = ((grad_names(desc, "X", no_grad)[0], 1.0), (grad_names(desc, "Y", no_grad)[0], -1.0))
    return [scale_desc(g, name, sign) for name, sign in sides if name != EMPTY]


@op(
    "minus",
    inputs={"X": "any shape", "Y": "same shape"},
    outputs={"Out": "X - Y"},
    cost="Out",
    infer=alike("X Y", "Out"),
    grad=_grad,
    inplace=True,
    cuda=NUMBERS,
)
def minus(b: Binder) -> None:
    """Out = X - Y; Out inherits X's LoD. The gradients are scales by 1 and -1.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("minus", {"X": [3.0], "Y": [1.0]})["Out"]
        array([2.])

    Source: Fluid's minus_op.
    """
    if b.on_cuda:
        out = b["Out"]
        return binary(b, CUDA, "f::sub", b["X"], b["Y"], out, (out.shape,) * 3)
    b(np.subtract, b["X"], b["Y"], out=b["Out"])
